"""What the functions really called on the local stack, against what their roles allow. Runs last in this folder."""

import pytest

from infra.permissions import PERMISSIONS
from infra.service_permissions import EVERY_FUNCTION

pytestmark = pytest.mark.local

# Allowed, and not called in these tests; each is needed for what it says.
RARELY = {
    ("interruption", "states:DescribeExecution"): "an execution that ended badly, or a name that is taken",
    ("terminate", "states:DescribeExecution"): "a run by hand whose execution's name is taken",
    ("sweep", "dynamodb:UpdateItem"): "a run that ended badly and that the event did not start again before the sweep",
    ("terminate", "autoscaling:RecordLifecycleActionHeartbeat"): "a run that failed while a hook holds its instance",
    ("sweep", "autoscaling:RecordLifecycleActionHeartbeat"): "a launch whose node is not Ready, a run that rests",
    ("interruption", "autoscaling:CompleteLifecycleAction"): "a hook of ours whose instance is gone or in a warm pool",
    ("interruption", "autoscaling:RecordLifecycleActionHeartbeat"): "a run that died three times while a hook waits",
    ("sweep", "autoscaling:UpdateAutoScalingGroup"): "an upgrade that was stopped while MaxSize was raised",
    ("sweep", "autoscaling:ResumeProcesses"): "an upgrade that was stopped while AZRebalance was suspended",
    ("upgrade", "states:DescribeExecution"): "an upgrade that another execution holds, or was left behind",
    ("upgrade", "cloudwatch:DescribeAlarms"): "a policy with a canary",
    ("upgrade", "ssm:GetParameter"): "an image by its alias, or a Kubernetes version",
    ("upgrade", "autoscaling:DescribeLaunchConfigurations"): "a group that still has a launch configuration",
    ("upgrade", "cloudwatch:GetMetricStatistics"): "the use of a quota, where Service Quotas has answered before",
    ("upgrade", "ec2:DescribeSpotPriceHistory"): "a price that fn sync has not written down yet",
    ("upgrade", "pricing:GetProducts"): "a price that fn sync has not written down yet",
    **{
        (function, action): reason
        for function in ("decide", "disrupt")
        for action, reason in (
            ("autoscaling:DescribeLaunchConfigurations", "a group that still has a launch configuration"),
            ("eks:DescribeNodegroup", "a managed node group"),
            ("pricing:GetProducts", "a type whose price fn sync has not written down yet"),
            ("ec2:DescribeSpotPriceHistory", "a type whose spot price fn sync has not written down yet"),
        )
    },
    ("decide", "states:DescribeExecution"): "a round that is open when the next decision is due",
    ("disrupt", "autoscaling:UpdateAutoScalingGroup"): "a group at its MaxSize",
    ("sync", "autoscaling:DeleteLifecycleHook"): "a group that no policy selects any more",
    ("drain", "elasticloadbalancing:DescribeInstanceHealth"): "a classic load balancer",
    ("sync", "autoscaling:DescribeLaunchConfigurations"): "a group that still has a launch configuration",
}
OF_ROUNDS = {"decide", "disrupt"}  # the round that launches and drains is one of the long tests, and so is this of them
SAME_ACTION = {"sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility"}


@pytest.fixture
def recorded(stack):
    """Function without prefix -> the actions it called."""
    calls = stack.control("GET", "calls")
    found = {
        name.removeprefix("leeward-"): {SAME_ACTION.get(call, call) for call in counts}
        for name, counts in calls.items()
    }
    missing = set(PERMISSIONS) - set(found)
    assert not missing, f"nothing recorded for {missing}: run the whole of tests/local/chain"
    return found


@pytest.mark.parametrize("function", PERMISSIONS)
def test_every_recorded_call_is_allowed_by_its_role(recorded, function):
    allowed = {permission.action for permission in (*PERMISSIONS[function], *EVERY_FUNCTION)}
    assert recorded[function] - allowed == set()


@pytest.mark.parametrize(
    "function", [pytest.param(name, marks=pytest.mark.long if name in OF_ROUNDS else ()) for name in PERMISSIONS]
)
def test_no_role_allows_what_nothing_uses_without_a_reason(recorded, function):
    allowed = {permission.action for permission in PERMISSIONS[function] if not permission.indirect}
    unused = {action for action in allowed - recorded[function] if (function, action) not in RARELY}
    assert unused == set()
