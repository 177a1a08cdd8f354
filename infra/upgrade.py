"""The upgrade room: the state machine node-group-upgrade and the function that takes its steps.

The definition is the room's own file; here it only gets its ARNs, a role, logs and alarms."""

from pathlib import Path

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra import names
from infra.alarms import Alarms, Threshold
from infra.function import FunctionShape, KubernetesAccess, LeewardFunction, Surroundings
from infra.permissions import UPGRADE_MACHINE
from infra.scopes import Scopes

DEFINITION = "functions/leeward/upgrade/state_machine.asl.json"

UPGRADE = FunctionShape(
    name="upgrade",
    handler="leeward.upgrade.handler.upgrade",
    room="upgrade",
    description="Takes the steps of node-group-upgrade: pre-flight, launches, waves, restore",
    timeout=300,
    memory=1769,  # one vCPU: it plans over a whole cluster
    access=KubernetesAccess.ACT,
)


class Upgrade(Construct):
    """node-group-upgrade and what belongs to it."""

    def __init__(self, scope: Construct, *, root: Path, surroundings: Surroundings, alarms: Alarms) -> None:
        super().__init__(scope, "Upgrade")
        self.function = LeewardFunction(self, UPGRADE, surroundings)
        self.role = _role(self, surroundings.scopes)
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/vendedlogs/states/{names.UPGRADE_MACHINE}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.state_machine = stepfunctions.StateMachine(
            self,
            "StateMachine",
            state_machine_name=names.UPGRADE_MACHINE,
            state_machine_type=stepfunctions.StateMachineType.STANDARD,
            definition_body=stepfunctions.DefinitionBody.from_string((root / DEFINITION).read_text(encoding="utf-8")),
            definition_substitutions={
                "UpgradeFunctionArn": self.function.function.function_arn,
                "Partition": Aws.PARTITION,
            },
            role=self.role.without_policy_updates(),
            tracing_enabled=True,
            logs=stepfunctions.LogOptions(
                destination=self.log_group, level=stepfunctions.LogLevel.ALL, include_execution_data=True
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._watch(alarms)

    def _watch(self, alarms: Alarms) -> None:
        period = Duration.minutes(5)
        alarms.add(
            "upgrade-failed",
            self.state_machine.metric_failed(period=period),
            Threshold(at_least=1),
            "A node group upgrade has stopped: the execution's error and cause say why and what to do; started again "
            "it goes on.",
        )
        alarms.add(
            "upgrade-timed-out",
            self.state_machine.metric_timed_out(period=period),
            Threshold(at_least=1),
            "A node group upgrade ran for thirty days: look at what it waits for; started again it goes on.",
        )


def _role(scope: Construct, scopes: Scopes) -> iam.Role:
    """Only executions of this state machine may wear it."""
    own = {"ArnEquals": {"aws:SourceArn": scopes.upgrade_machine}}
    return iam.Role(
        scope,
        "StateMachineRole",
        assumed_by=iam.PrincipalWithConditions(iam.ServicePrincipal("states.amazonaws.com"), own),
        description=f"{names.UPGRADE_MACHINE}: exactly what infra/permissions.py lists",
        inline_policies={"leeward": iam.PolicyDocument(statements=scopes.statements(UPGRADE_MACHINE), minimize=False)},
    )
