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
    ("sweep", "autoscaling:UpdateAutoScalingGroup"): "an upgrade that was stopped while MaxSize was raised",
    ("sweep", "autoscaling:ResumeProcesses"): "an upgrade that was stopped while AZRebalance was suspended",
    ("upgrade", "states:DescribeExecution"): "an upgrade that another execution holds, or was left behind",
    ("upgrade", "dynamodb:Query"): "an abort, or more nodes than old ones that could pay for them",
    ("upgrade", "cloudwatch:DescribeAlarms"): "a policy with a canary",
    ("upgrade", "ssm:GetParameter"): "an image by its alias, or a Kubernetes version",
    ("upgrade", "eks:UpdateNodegroupVersion"): "a managed node group",
    ("upgrade", "eks:DescribeUpdate"): "a managed node group",
    ("sync", "autoscaling:DescribeLaunchConfigurations"): "a group that still has a launch configuration",
}
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


@pytest.mark.parametrize("function", PERMISSIONS)
def test_no_role_allows_what_nothing_uses_without_a_reason(recorded, function):
    allowed = {permission.action for permission in PERMISSIONS[function] if not permission.indirect}
    unused = {action for action in allowed - recorded[function] if (function, action) not in RARELY}
    assert unused == set()
