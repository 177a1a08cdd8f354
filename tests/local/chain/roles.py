"""What the functions really called on the local stack, against what their roles allow.

A room is its tests with one deployed stack. Every call that a room has seen is within its function's role; whether a
role allows what nothing uses is judged where all that the function does is exercised: in one of the rooms."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from infra.permissions import PERMISSIONS
from infra.service_permissions import EVERY_FUNCTION
from local.stack import LocalStack
from tests.infra.iam_evaluator import Request, allows
from tests.infra.template import ACCOUNT, Statement, Template

ENDINGS, GROUPS = "tests/local/chain/endings", "tests/local/chain/groups"
JUDGED_IN = {
    "interruption": ENDINGS,
    "terminate": ENDINGS,
    "drain": ENDINGS,
    "reconciler": ENDINGS,
    "notifications": ENDINGS,
    "disruption-planner": GROUPS,
    "disrupt": GROUPS,
    "upgrade": GROUPS,
    "sync": GROUPS,
}

# Allowed, and not called in these tests; each is needed for what it says.
RARELY = {
    ("interruption", "arc-zonal-shift:GetManagedResource"): "a notice of a zonal shift",
    ("interruption", "ec2:DescribeCapacityReservations"): "the warning about a Capacity Block; in a long test",
    ("interruption", "states:DescribeExecution"): "an execution that ended badly, or a name that is taken",
    **{
        (function, "states:SendTaskSuccess"): "a cause that joins a termination while its execution pauses"
        for function in ("terminate", "reconciler", "upgrade", "disrupt")
    },
    ("terminate", "states:DescribeExecution"): "a manual run whose execution's name is taken",
    (
        "reconciler",
        "dynamodb:UpdateItem",
    ): "a run that ended badly and that the event did not start again before the reconciler",
    ("terminate", "autoscaling:RecordLifecycleActionHeartbeat"): "a run that failed while a hook holds its instance",
    ("reconciler", "autoscaling:RecordLifecycleActionHeartbeat"): "a launch whose node is not Ready, a run that rests",
    ("interruption", "autoscaling:CompleteLifecycleAction"): "a hook of ours whose instance is gone or in a warm pool",
    ("interruption", "autoscaling:RecordLifecycleActionHeartbeat"): "a run that died three times while a hook waits",
    **{
        (function, "autoscaling:DescribeAutoScalingInstances"): "an instance of a warm pool; no local group has one"
        for function in ("interruption", "drain", "reconciler")
    },
    ("reconciler", "autoscaling:UpdateAutoScalingGroup"): "an upgrade that was stopped while MaxSize was raised",
    ("drain", "autoscaling:UpdateAutoScalingGroup"): "a replacement in a group at MaxSize",
    ("drain", "dynamodb:PutItem"): "a replacement in a group at MaxSize",
    ("drain", "autoscaling:CompleteLifecycleAction"): "a group that replaces root volumes; in the other room",
    ("drain", "ec2:RebootInstances"): "a node whose policy reboots; in the other room",
    ("drain", "ec2:DescribeInstanceStatus"): "the circuit breaker before a reboot; in the other room",
    ("terminate", "autoscaling:UpdateAutoScalingGroup"): "a replacement in a group that was at MaxSize",
    ("terminate", "dynamodb:BatchGetItem"): "a replacement in a group that was at MaxSize",
    ("reconciler", "autoscaling:ResumeProcesses"): "an upgrade that was stopped while AZRebalance was suspended",
    **{
        ("reconciler", action): "a zone that is evacuated; in the other room"
        for action in ("autoscaling:SuspendProcesses", "ec2:DescribeSubnets")
    },
    ("interruption", "sqs:ChangeMessageVisibility"): "a message that has to wait for an answer of AWS",
    ("upgrade", "dynamodb:UpdateItem"): "a cause that joins a termination in progress",
    ("upgrade", "autoscaling:DescribeScalingActivities"): "a group whose size is not the one that the record explains",
    ("upgrade", "states:DescribeExecution"): "an upgrade that another execution holds, or was left behind",
    ("upgrade", "ssm:GetParameter"): "an image by its alias, or a Kubernetes version",
    ("upgrade", "autoscaling:DescribeLaunchConfigurations"): "a group that still has a launch configuration",
    ("upgrade", "cloudwatch:GetMetricStatistics"): "the use of a quota, where Service Quotas has answered before",
    ("upgrade", "ec2:DescribeSpotPriceHistory"): "a price that fn sync has not written down yet",
    ("upgrade", "pricing:GetProducts"): "a price that fn sync has not written down yet",
    **{
        (function, action): reason
        for function in ("disruption-planner", "disrupt")
        for action, reason in (
            ("autoscaling:DescribeLaunchConfigurations", "a group that still has a launch configuration"),
            ("eks:DescribeNodegroup", "a managed node group"),
            ("cloudwatch:DescribeAlarms", "a policy with alarms"),
            ("pricing:GetProducts", "a type whose price fn sync has not written down yet"),
            ("ec2:DescribeSpotPriceHistory", "a type whose spot price fn sync has not written down yet"),
        )
    },
    ("disruption-planner", "states:DescribeExecution"): "a run that is open when the next decision is due",
    ("disruption-planner", "ssm:GetParameter"): "a managed node group whose policy says update.auto",
    ("disrupt", "autoscaling:UpdateAutoScalingGroup"): "a group at its MaxSize",
    ("sync", "autoscaling:DeleteLifecycleHook"): "a group that no policy selects any more",
    ("drain", "elasticloadbalancing:DescribeInstanceHealth"): "a classic load balancer",
    ("sync", "autoscaling:DescribeLaunchConfigurations"): "a group that still has a launch configuration",
}
WITH_ACCESS = {"interruption", "drain", "reconciler", "sync", "upgrade", "disruption-planner", "disrupt"}
SAME_ACTION = {"sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility"}


def judged_in(room: str) -> list[str]:
    """The functions that are exercised in this room, as `PERMISSIONS` names them."""
    return [function for function in PERMISSIONS if JUDGED_IN[function] == room]


def recorded(stack: LocalStack, room: str) -> Mapping[str, set[str]]:
    """Function without prefix -> the actions it called so far. Fails where the room has not been run as a whole."""
    calls: Mapping[str, Mapping[str, Any]] = stack.control("GET", "calls")
    found = {
        name.removeprefix("leeward-"): {SAME_ACTION.get(call, call) for call in counts}
        for name, counts in calls.items()
    }
    missing = set(judged_in(room)) - set(found)
    assert not missing, f"nothing recorded for {missing}: run the whole of {room}"
    return found


def beyond(called: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Function -> the actions it called and may not. A function without a role may do nothing."""
    found = {function: actions - _allowed(function) for function, actions in called.items()}
    return {function: actions for function, actions in found.items() if actions}


def _allowed(function: str) -> set[str]:
    permissions: Sequence[Any] = (*PERMISSIONS[function], *EVERY_FUNCTION) if function in PERMISSIONS else ()
    return {permission.action for permission in permissions}


def statements(stack: LocalStack) -> Mapping[str, Sequence[Statement]]:
    """Function without prefix -> the statements of its role, as they were deployed."""
    output = stack.directory / "cdk.out"
    text = (output / "Leeward.template.json").read_text().replace(stack.account, ACCOUNT)
    template = Template(raw=json.loads(text), assembly=output)
    functions = template.named("AWS::Lambda::Function")
    return {
        name.removeprefix("leeward-"): template.statements(function["Role"]) for name, function in functions.items()
    }


def denied(stack: LocalStack) -> list[str]:
    """The requests that functions made and that IAM would deny, with their resources and condition keys."""
    roles = statements(stack)
    return [
        f"{one['function']}: {request.action} on {request.resource} {dict(request.context)}"
        for one in stack.control("GET", "requests")
        for request in [_request(one, stack.account)]
        if not allows(roles.get(one["function"].removeprefix("leeward-"), ()), request)
    ]


def _request(one: Mapping[str, Any], account: str) -> Request:
    """The request in the account that templates are read for."""
    action = SAME_ACTION.get(one["action"], one["action"])
    given = {key: [value.replace(account, ACCOUNT) for value in values] for key, values in one["context"].items()}
    context = {key: values if len(values) > 1 else values[0] for key, values in given.items()}
    return Request(action=action, resource=one["resource"].replace(account, ACCOUNT), context=context)


def in_clusters(stack: LocalStack) -> Mapping[str, set[str]]:
    """Function without prefix -> what it asked the Kubernetes API for and was allowed, `list nodes`."""
    found: dict[str, set[str]] = {}
    for used in stack.cluster_control("GET", "access-used"):
        session = used["user"].rpartition("/")[2]
        if session.startswith("leeward-"):
            function = session.removeprefix("leeward-")
            found.setdefault(function, set()).add(f"{used['verb']} {used['resource']}")
    return found


def unused(function: str, called: set[str]) -> set[str]:
    """The actions that its role allows, that it did not call, and that no reason is given for."""
    allowed = {permission.action for permission in PERMISSIONS[function] if not permission.indirect}
    return {action for action in allowed - called if (function, action) not in RARELY}
