"""Check of every row of infra/permissions.py by IAM's policy simulation on the deployed role: the row's actions are
allowed under its condition, and denied without it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from account_test.aws import code, served
from account_test.context import Context
from account_test.errors import NotServedError
from account_test.judge import Finding
from account_test.results import Result
from infra import names as naming
from infra.permissions import PERMISSIONS
from infra.service_permissions import DISRUPTION_MACHINE, EVERY_FUNCTION, STATE_MACHINE, UPGRADE_MACHINE

PROVES = "IAM itself allows every row of the table of permissions on the deployed roles, and denies what is beside it"
NEVER = "iam:CreateUser"  # no role of ours may do this: an endpoint that allows it evaluates nothing
MACHINES = {
    naming.TERMINATION: STATE_MACHINE,
    naming.UPGRADE: UPGRADE_MACHINE,
    naming.MANAGED_UPGRADE: UPGRADE_MACHINE,
    naming.DISRUPTION: DISRUPTION_MACHINE,
}
SAMPLE = "0123456789abcdef0"
CALL = "iam:SimulatePrincipalPolicy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Actions of one statement that have the same resource and condition. `context` meets the condition, `beside` does
    not: every key has another value.
    """

    function: str
    actions: tuple[str, ...]
    resource: str
    context: tuple[Mapping[str, Any], ...] = ()
    beside: tuple[Mapping[str, Any], ...] = ()


def check(context: Context) -> Result:
    """Check every row. Raises NotServedError where there is no such call, or one that evaluates nothing."""
    findings: list[Finding] = []
    conditions, left_out = _evaluates_conditions(context), 0
    for function, permissions in (*PERMISSIONS.items(), *MACHINES.items()):
        role = _role(context, function)
        if not findings:
            _refuse_a_rubber_stamp(context, role)
        statements = list(_statements(context, role.rpartition("/")[2]))
        beside = () if function in MACHINES else EVERY_FUNCTION
        wanted = {permission.action for permission in (*permissions, *beside)}
        asked = list(rows(function, statements, wanted))
        if not conditions:
            left_out += sum(len(row.actions) for row in asked if row.context)
            wanted -= {action for row in asked if row.context for action in row.actions}
            asked = [row for row in asked if not row.context]
        findings.append(_judge(context, asked, role, statements, wanted))
    why = (
        f"{left_out} rows under conditions were not run: this endpoint does not evaluate conditions" if left_out else ""
    )
    return Result(name="IAM", proves=PROVES, findings=findings, why=why)


def _judge(
    context: Context, asked: Sequence[Row], role: str, statements: Sequence[Mapping[str, Any]], wanted: set[str]
) -> Finding:
    wrong: list[str] = []
    allowed: set[str] = set()
    for row in asked:
        decisions = _simulate(context, role, row.actions, row.resource, row.context)
        allowed |= {action for action, decision in decisions.items() if decision == "allowed"}
        wrong += [f"{action} {decision}" for action, decision in decisions.items() if decision != "allowed"]
        if row.context:
            beside = _simulate(context, role, row.actions, row.resource, row.beside)
            passed = [action for action, it in beside.items() if it == "allowed" and not _elsewhere(action, statements)]
            wrong += [f"{action} allowed beside its condition" for action in passed]
    missing = sorted(wanted - allowed - {word.split()[0] for word in wrong})
    wrong += [f"{action} is in no statement of the role" for action in missing]
    return Finding(
        promise=f"{asked[0].function if asked else role} may do what its {len(wanted)} rows say, as they say it",
        kept=not wrong,
        found="; ".join(wrong) or f"{len(allowed)} actions allowed",
    )


def _elsewhere(action: str, statements: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether another statement allows the action without a condition."""
    return any(action in _listed(one["Action"]) and not one.get("Condition") for one in statements)


def rows(function: str, statements: Sequence[Mapping[str, Any]], wanted: set[str]) -> Iterator[Row]:
    """Return one row for each statement: the first of its resources, wildcards filled in, and values that meet its
    conditions.
    """
    for statement in statements:
        actions = tuple(sorted(set(_listed(statement["Action"])) & wanted))
        if actions:
            yield Row(
                function=function,
                actions=actions,
                resource=_filled(_listed(statement["Resource"])[0]),
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


def _simulate(
    context: Context, role: str, actions: Sequence[str], resource: str, entries: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the decision by action. Where IAM does not know one of several actions, each is simulated alone."""
    asked = {"PolicySourceArn": role, "ResourceArns": [resource], "ContextEntries": list(entries)}
    try:
        with served(CALL):
            answer = context.aws("iam").simulate_principal_policy(ActionNames=list(actions), **asked)
    except ClientError as error:
        if len(actions) == 1:
            return {actions[0]: f"not evaluated ({code(error)})"}
        alone = (_simulate(context, role, [action], resource, entries) for action in actions)
        return {action: decision for one in alone for action, decision in one.items()}
    return {one["EvalActionName"]: one["EvalDecision"] for one in answer["EvaluationResults"]}


def _refuse_a_rubber_stamp(context: Context, role: str) -> None:
    if _simulate(context, role, [NEVER], "*", ()).get(NEVER) == "allowed":
        raise NotServedError(f"{CALL} of this endpoint allows everything: it evaluates nothing")


def _evaluates_conditions(context: Context) -> bool:
    """Return whether the endpoint evaluates conditions, by a policy of one condition that the context meets."""
    key = "aws:ResourceTag/leeward"
    statement = {"Effect": "Allow", "Action": "ec2:StopInstances", "Resource": "*"}
    document = {
        "Version": "2012-10-17",
        "Statement": [{**statement, "Condition": {"StringEquals": {key: "yes"}}}],
    }
    entry = {"ContextKeyName": key, "ContextKeyValues": ["yes"], "ContextKeyType": "string"}
    with served("iam:SimulateCustomPolicy"):
        answer = context.aws("iam").simulate_custom_policy(
            PolicyInputList=[json.dumps(document)], ActionNames=["ec2:StopInstances"], ContextEntries=[entry]
        )
    return bool(answer["EvaluationResults"][0]["EvalDecision"] == "allowed")


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
