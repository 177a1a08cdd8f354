"""A state machine of one of the rooms: its definition from the room's own file, its role, its logs, its two alarms."""

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
from infra.function import LeewardFunction
from infra.permission import Permission
from infra.rules import EventRule
from infra.scopes import Scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineShape:
    """What tells one state machine from another. `definition`: path of the ASL file from the project's root; `alarms`:
    what the names of its alarms begin with; `failed`, `timed_out`: what they tell who is called at night.
    """

    name: str
    definition: str
    permissions: tuple[Permission, ...]
    alarms: str
    failed: str
    timed_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What stands in the stack."""

    state_machine: stepfunctions.StateMachine
    role: iam.Role
    permissions: tuple[Permission, ...]

    @property
    def arn(self) -> str:
        """Of the state machine."""
        return self.state_machine.state_machine_arn


def machine(
    scope: Construct, shape: MachineShape, *, root: Path, scopes: Scopes, alarms: Alarms, values: Mapping[str, str]
) -> Machine:
    """`values`: what the definition's `${...}` stand for, beside the partition."""
    role, name = _role(scope, shape, scopes), scopes.names.machine(shape.name)
    log_group = logs.LogGroup(
        scope,
        "Logs",
        log_group_name=f"/aws/vendedlogs/states/{name}",  # this prefix needs no resource policy
        retention=logs.RetentionDays.ONE_MONTH,
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
        role=role.without_policy_updates(),
        tracing_enabled=True,
        logs=stepfunctions.LogOptions(
            destination=log_group, level=stepfunctions.LogLevel.ERROR, include_execution_data=True
        ),
        removal_policy=RemovalPolicy.DESTROY,
    )
    _watch(state_machine, shape, alarms)
    return Machine(state_machine=state_machine, role=role, permissions=shape.permissions)


def call_at_deaths(
    scope: Construct, construct_id: str, rule: EventRule, function: LeewardFunction, *, retries: int, minutes: int
) -> None:
    """The function hears of an execution that no Catch could save. `retries`, `minutes`: of the delivery; whoever reads
    the records on a schedule finds what was not delivered."""
    events.Rule(
        scope,
        construct_id,
        rule_name=function.names.rule(rule.name),
        description=rule.description,
        event_pattern=events.EventPattern(
            source=rule.pattern["source"],
            detail_type=rule.pattern["detail-type"],
            detail=rule.pattern["detail"],
        ),
    ).add_target(
        targets.LambdaFunction(function.function, retry_attempts=retries, max_event_age=Duration.minutes(minutes))
    )


def _watch(state_machine: stepfunctions.StateMachine, shape: MachineShape, alarms: Alarms) -> None:
    period, once = Duration.minutes(5), Threshold(at_least=1)
    alarms.add(f"{shape.alarms}-failed", state_machine.metric_failed(period=period), once, shape.failed)
    alarms.add(f"{shape.alarms}-timed-out", state_machine.metric_timed_out(period=period), once, shape.timed_out)


def _role(scope: Construct, shape: MachineShape, scopes: Scopes) -> iam.Role:
    """Only executions of this state machine may wear it."""
    own = {"ArnEquals": {"aws:SourceArn": scopes.machine(shape.name)}}
    allowed = iam.PolicyDocument(statements=scopes.statements(shape.permissions), minimize=False)
    return iam.Role(
        scope,
        "StateMachineRole",
        assumed_by=iam.PrincipalWithConditions(iam.ServicePrincipal("states.amazonaws.com"), own),
        description=f"{scopes.names.machine(shape.name)}: exactly what infra/service_permissions.py lists",
        inline_policies={"leeward": allowed},
    )
