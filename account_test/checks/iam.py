"""Check of every row of infra/permissions.py by IAM's policy simulation on the deployed role: the row's actions are
allowed on each resource of their statement under its condition, and denied without it.

The simulator is given the context that meets our own conditions. Whether a service puts such a key into its request is
not in its answer: rows under keys that EC2 and Auto Scaling alone know, and the rights that Auto Scaling uses in the
caller's name, are unproven until LaunchInstances and UpdateAutoScalingGroup have answered (`launch_rights`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from account_test.checks.simulation import Decisions, Question, evaluates_conditions, refuse_a_rubber_stamp, simulate
from account_test.context import Context
from account_test.judge import Finding, unproven
from account_test.results import Result
from infra import names as naming
from infra.launch_permissions import LAUNCH
from infra.permission import Permission
from infra.permissions import PERMISSIONS
from infra.service_permissions import DISRUPTION_MACHINE, EVERY_FUNCTION, STATE_MACHINE, UPGRADE_MACHINE

NAME = "IAM"
PROVES = "IAM itself allows every row of the table of permissions on the deployed roles, and denies what is beside it"
MACHINES = {
    naming.TERMINATION: STATE_MACHINE,
    naming.UPGRADE: UPGRADE_MACHINE,
    naming.MANAGED_UPGRADE: UPGRADE_MACHINE,
    naming.DISRUPTION: DISRUPTION_MACHINE,
}
SAMPLE = "0123456789abcdef0"
OF_THE_SERVICE = ("ec2:", "autoscaling:")  # keys that only the service itself puts into a request
LAUNCHES = "autoscaling:LaunchInstances"  # a role that may call it launches with its own rights
MAY_LAUNCH = "may launch"
NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Actions of one statement with all of its resources. `context` meets its condition, `beside` does not: every key
    has another value.
    """

    function: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    context: tuple[Mapping[str, Any], ...] = ()
    beside: tuple[Mapping[str, Any], ...] = ()

    def of(self, actions: set[str]) -> "Row | None":
        """Return the row with those of its actions that are among these, None without any."""
        kept = tuple(action for action in self.actions if action in actions)
        return replace(self, actions=kept) if kept else None

    @property
    def keys(self) -> set[str]:
        """Condition keys that only EC2 and Auto Scaling give a value."""
        names = {str(entry["ContextKeyName"]) for entry in self.context}
        return {name for name in names if name.startswith(OF_THE_SERVICE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Deployed role of a function or a state machine, with the statements of its policies."""

    owner: str
    arn: str
    statements: Sequence[Mapping[str, Any]]


def check(context: Context) -> Result:
    """Check every row. Raises NotServedError where there is no such call, or one that evaluates nothing."""
    findings: list[Finding] = []
    conditions, left_out = evaluates_conditions(context), 0
    for owner, permissions in (*PERMISSIONS.items(), *MACHINES.items()):
        arn = _role(context, owner)
        if not findings:
            refuse_a_rubber_stamp(context, arn)
        role = Role(owner=owner, arn=arn, statements=list(_statements(context, arn.rpartition("/")[2])))
        beside = () if owner in MACHINES else EVERY_FUNCTION
        wanted = {permission.action for permission in (*permissions, *beside)}
        asked = list(rows(owner, role.statements, wanted))
        if not conditions:
            left_out += sum(len(row.actions) for row in asked if row.context)
            wanted -= {action for row in asked if row.context for action in row.actions}
            asked = [row for row in asked if not row.context]
        findings += _judged(context, role, asked, wanted, permissions)
    why = (
        f"{left_out} rows under conditions were not run: this endpoint does not evaluate conditions" if left_out else ""
    )
    return Result(name=NAME, proves=PROVES, findings=findings, why=why)


def _judged(
    context: Context, role: Role, asked: Sequence[Row], wanted: set[str], permissions: Sequence[Permission]
) -> Iterator[Finding]:
    """Return a finding for the rows that the simulator can show, another one for the launch rights."""
    launches = any(permission.action == LAUNCHES for permission in permissions)
    launch = {permission.action for permission in permissions if launches and permission in LAUNCH}
    launch |= {action for row in asked if row.keys for action in row.actions}
    missing = [f"{action} is in no statement of the role" for action in sorted(wanted - _held(asked))]
    shown = wanted - launch
    wrong, count = _wrong(context, role, _narrowed(asked, shown))
    yield Finding(
        promise=f"{role.owner} may do what its {len(shown)} rows say, as they say it",
        kept=not wrong and not missing,
        found="; ".join([*wrong, *missing]) or f"{count} times an action on a resource allowed",
    )
    if of_launches := _narrowed(asked, launch):
        denied, count = _wrong(context, role, of_launches)
        keys = ", ".join(sorted({key for row in of_launches for key in row.keys})) or "the caller's rights"
        promise = f"{role.owner} {MAY_LAUNCH}"
        if denied:
            yield Finding(promise=promise, kept=False, found="; ".join(denied))
        else:
            yield unproven(promise, f"the simulator allows {count} times, given {keys}; a launch alone shows it")


def _narrowed(asked: Sequence[Row], actions: set[str]) -> list[Row]:
    return [narrowed for row in asked if (narrowed := row.of(actions)) is not None]


def _held(asked: Sequence[Row]) -> set[str]:
    return {action for row in asked for action in row.actions}


def _wrong(context: Context, role: Role, asked: Sequence[Row]) -> tuple[list[str], int]:
    """Return what is denied, or allowed beside its condition, and the number of decisions as they should be."""
    wrong: list[str] = []
    allowed = 0
    for row in asked:
        question = Question(role=role.arn, actions=row.actions, resources=row.resources, entries=row.context)
        decided = simulate(context, question)
        for action, resource, decision in _in_order(row, decided):
            allowed += decision == "allowed"
            wrong += [] if decision == "allowed" else [f"{action} {decision}{_on(resource)}"]
        if not row.context:
            continue
        question = Question(role=role.arn, actions=row.actions, resources=row.resources, entries=row.beside)
        for action, resource, decision in _in_order(row, simulate(context, question)):
            if decision == "allowed" and not _elsewhere(action, resource, role.statements):
                wrong.append(f"{action} allowed beside its condition{_on(resource)}")
    return wrong, allowed


def _in_order(row: Row, decisions: Decisions) -> Iterator[tuple[str, str, str]]:
    """Return a decision for every action and resource of the row: one without an answer was not evaluated."""
    for action in row.actions:
        for resource in row.resources:
            yield action, resource, decisions.get((action, resource), NOT_EVALUATED)


def _on(resource: str) -> str:
    return "" if resource == "*" else f" on {resource}"


def _elsewhere(action: str, resource: str, statements: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether another statement allows the action on the resource without a condition."""
    return any(
        action in _listed(one["Action"])
        and not one.get("Condition")
        and any(fnmatchcase(resource, pattern) for pattern in _listed(one["Resource"]))
        for one in statements
    )


def rows(function: str, statements: Sequence[Mapping[str, Any]], wanted: set[str]) -> Iterator[Row]:
    """Return one row for each statement: all of its resources, wildcards filled in, and values that meet its
    conditions.
    """
    for statement in statements:
        actions = tuple(sorted(set(_listed(statement["Action"])) & wanted))
        if actions:
            yield Row(
                function=function,
                actions=actions,
                resources=tuple(dict.fromkeys(_filled(one) for one in _listed(statement["Resource"]))),
                context=tuple(_entries(statement.get("Condition") or {}, met=True)),
                beside=tuple(_entries(statement.get("Condition") or {}, met=False)),
            )


def _entries(condition: Mapping[str, Any], *, met: bool) -> Iterator[Mapping[str, Any]]:
    """Return context that meets the condition, or does not. An operator with `Not` is met by any other value; `Null`
    stands beside another operator on the same key, which gives it a value.
    """
    for operator, keys in condition.items():
        if operator == "Null":
            continue
        for key, values in keys.items():
            named = _filled(str(_listed(values)[0]))
            value = named if met is not ("Not" in operator) else f"not-{named}"
            kind = "stringList" if operator.startswith(("ForAllValues", "ForAnyValue")) else "string"
            yield {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": kind}


def _role(context: Context, function: str) -> str:
    if function in MACHINES:
        machine = context.run.machine(function)
        return str(context.aws("stepfunctions").describe_state_machine(stateMachineArn=machine)["roleArn"])
    name = context.run.names.function(function)
    return str(context.aws("lambda").get_function_configuration(FunctionName=name)["Role"])


def _statements(context: Context, role: str) -> Iterator[Mapping[str, Any]]:
    """Return the statements of the role's inline policies and of the managed policies attached to it."""
    iam = context.aws("iam")
    for name in iam.list_role_policies(RoleName=role)["PolicyNames"]:
        yield from _listed(iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]["Statement"])
    for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        arn = policy["PolicyArn"]
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        yield from _listed(document["Statement"])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _filled(text: str) -> str:
    return "*" if text == "*" else text.replace("*", SAMPLE)
