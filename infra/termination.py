"""The termination room: the state machine, the two functions that take its steps, and the minute sweep.

The definition is the room's own file; here it only gets its ARNs, a role, logs and alarms."""

from pathlib import Path

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra import names
from infra.alarms import Alarms, Threshold
from infra.function import FunctionShape, KubernetesAccess, LeewardFunction, Surroundings
from infra.permissions import STATE_MACHINE
from infra.schedule import call_every
from infra.scopes import Scopes

DEFINITION = "functions/leeward/termination/state_machine.asl.json"
SWEEP_EVERY = 1  # minutes
SWEEP_SILENT_FOR = 5  # minutes

TERMINATE = FunctionShape(
    name="terminate",
    handler="leeward.termination.handler.terminate",
    room="termination",
    description="Takes the steps of node-termination that speak to AWS alone",
    timeout=45,
    memory=256,
)
SWEEP = FunctionShape(
    name="sweep",
    handler="leeward.termination.handler.sweep",
    room="termination",
    description="Finishes what no Catch can: orphan hooks, lost starts, stale marks",
    timeout=55,
    memory=512,
    access=KubernetesAccess.ACT,
    once=True,
)


def drain_shape(concurrency: int | None) -> FunctionShape:
    """fn drain; its cap keeps a burst of terminations from flooding the API server, the state machine retries."""
    return FunctionShape(
        name="drain",
        handler="leeward.termination.handler.drain",
        room="termination",
        description="Takes the steps of node-termination that speak to Kubernetes",
        timeout=55,
        memory=512,
        access=KubernetesAccess.ACT,
        concurrency=concurrency,
    )


class Termination(Construct):
    """node-termination and what belongs to it."""

    def __init__(
        self, scope: Construct, *, root: Path, table: dynamodb.Table, surroundings: Surroundings, alarms: Alarms
    ) -> None:
        super().__init__(scope, "Termination")
        self.terminate = LeewardFunction(self, TERMINATE, surroundings)
        self.drain = LeewardFunction(self, drain_shape(surroundings.settings.drain_concurrency), surroundings)
        self.sweep = LeewardFunction(self, SWEEP, surroundings)
        self.role = _role(self, surroundings.scopes)
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/vendedlogs/states/{names.STATE_MACHINE}",  # this prefix needs no resource policy
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.state_machine = stepfunctions.StateMachine(
            self,
            "StateMachine",
            state_machine_name=names.STATE_MACHINE,
            state_machine_type=stepfunctions.StateMachineType.STANDARD,
            definition_body=stepfunctions.DefinitionBody.from_string((root / DEFINITION).read_text(encoding="utf-8")),
            definition_substitutions={
                "TerminateFunctionArn": self.terminate.function.function_arn,
                "DrainFunctionArn": self.drain.function.function_arn,
                "TableName": table.table_name,
                "Partition": Aws.PARTITION,
            },
            role=self.role.without_policy_updates(),
            tracing_enabled=True,
            logs=stepfunctions.LogOptions(
                destination=self.log_group, level=stepfunctions.LogLevel.ALL, include_execution_data=True
            ),
            removal_policy=RemovalPolicy.DESTROY,
        )
        call_every(self, SWEEP_EVERY, self.sweep)
        self._watch(alarms)

    def _watch(self, alarms: Alarms) -> None:
        period = Duration.minutes(5)
        alarms.add(
            "termination-failed",
            self.state_machine.metric_failed(period=period),
            Threshold(at_least=1),
            "A node could not be drained or terminated: the execution's error and cause name what blocked it.",
        )
        alarms.add(
            "termination-timed-out",
            self.state_machine.metric_timed_out(period=period),
            Threshold(at_least=1),
            "A termination ran longer than any hook can wait: look at its last steps; the sweep starts it again.",
        )
        alarms.stopped(
            "sweep-stopped",
            self.sweep.function,
            SWEEP_SILENT_FOR,
            "Nothing finishes lost runs and unanswered hooks any more: look at the log of leeward-sweep.",
        )


def _role(scope: Construct, scopes: Scopes) -> iam.Role:
    """Only executions of this state machine may wear it."""
    own = {"ArnEquals": {"aws:SourceArn": scopes.state_machine}}
    return iam.Role(
        scope,
        "StateMachineRole",
        assumed_by=iam.PrincipalWithConditions(iam.ServicePrincipal("states.amazonaws.com"), own),
        description=f"{names.STATE_MACHINE}: exactly what infra/permissions.py lists",
        inline_policies={"leeward": iam.PolicyDocument(statements=scopes.statements(STATE_MACHINE), minimize=False)},
    )
