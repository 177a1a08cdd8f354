"""State machine of one of the packages: its definition from the package's own file, its role, its logs, its two
alarms.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from infra.alarms import Alarms, Threshold
from infra.asl import read_definition
from infra.customer_key import imported_key, key_permissions
from infra.function import LeewardFunction
from infra.permission import Permission
from infra.role import GrantedRole, PolicyPart, RoleShape, granted_role
from infra.rules import EventRule, live
from infra.scopes import Scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShape:
    """Settings that differ between state machines. `definition`: path of the ASL file from the project's root;
    `alarms`: prefix of the names of its alarms; `failed`, `timed_out`: their descriptions for the operator on call.
    """

    name: str
    definition: str
    permissions: tuple[Permission, ...]
    alarms: str
    failed: str
    timed_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """State machine with its resources in the stack."""

    state_machine: stepfunctions.StateMachine
    policies: tuple[PolicyPart, ...]

    @property
    def arn(self) -> str:
        """ARN of the state machine."""
        return self.state_machine.state_machine_arn


def machine(
    scope: Construct, shape: MachineShape, *, root: Path, scopes: Scopes, alarms: Alarms, values: Mapping[str, str]
) -> Machine:
    """Create the state machine in a scope of its own. `values`: values of the definition's `${...}`, besides the
    partition."""
    granted, name = _role(scope, shape, scopes), scopes.names.machine(shape.name)
    log_group = logs.LogGroup(
        scope,
        "Logs",
        log_group_name=f"/aws/vendedlogs/states/{name}",  # this prefix needs no resource policy
        retention=logs.RetentionDays.ONE_MONTH,
        encryption_key=imported_key(scope, scopes.settings.kms_key),
        removal_policy=RemovalPolicy.DESTROY,
    )
    definition = json.dumps(read_definition(root / shape.definition), ensure_ascii=False)
    state_machine = stepfunctions.StateMachine(
        scope,
        "StateMachine",
        state_machine_name=name,
        state_machine_type=stepfunctions.StateMachineType.STANDARD,
        definition_body=stepfunctions.DefinitionBody.from_string(definition),
        definition_substitutions={**values, "Partition": Aws.PARTITION},
        role=granted.role.without_policy_updates(),
        tracing_enabled=True,
        logs=stepfunctions.LogOptions(
            destination=log_group, level=stepfunctions.LogLevel.ERROR, include_execution_data=True
        ),
        removal_policy=RemovalPolicy.DESTROY,
    )
    _watch(state_machine, shape, alarms)
    return Machine(state_machine=state_machine, policies=granted.parts)


def call_at_deaths(
    scope: Construct, construct_id: str, rule: EventRule, function: LeewardFunction, *, retries: int, minutes: int
) -> None:
    """Call the function for an execution that ended without a Catch. `retries`, `minutes`: limits of the delivery; the
    scheduled reader of the records finds events that were not delivered."""
    made = events.Rule(
        scope,
        construct_id,
        rule_name=function.names.rule(rule.name),
        description=rule.description,
        event_pattern=events.EventPattern(source=rule.pattern["source"]),
        targets=[
            targets.LambdaFunction(function.function, retry_attempts=retries, max_event_age=Duration.minutes(minutes))
        ],
    )
    resource = made.node.default_child
    if isinstance(resource, events.CfnRule):  # the construct's own pattern knows no replay-name
        resource.event_pattern = live(rule.pattern)


def _watch(state_machine: stepfunctions.StateMachine, shape: MachineShape, alarms: Alarms) -> None:
    period, once = Duration.minutes(5), Threshold(at_least=1)
    alarms.add(f"{shape.alarms}-failed", state_machine.metric_failed(period=period), once, shape.failed)
    alarms.add(f"{shape.alarms}-timed-out", state_machine.metric_timed_out(period=period), once, shape.timed_out)


def _role(scope: Construct, shape: MachineShape, scopes: Scopes) -> GrantedRole:
    """Return a role that only Step Functions may assume, for the state machines of this deployment. Not for this one
    alone: it is unknown which ARN Step Functions sends when it checks the log group while it makes the machine.
    """
    own = {"ArnLike": {"aws:SourceArn": scopes.machines()}}
    on_key = key_permissions(shape.permissions, environment=False) if scopes.settings.kms_key else ()
    return granted_role(
        scope,
        RoleShape(
            id="StateMachineRole",
            owner=scopes.names.machine(shape.name),
            trusts=iam.PrincipalWithConditions(iam.ServicePrincipal("states.amazonaws.com"), own),
            permissions=(*shape.permissions, *on_key),
            listed="infra/service_permissions.py",
        ),
        scopes,
    )
