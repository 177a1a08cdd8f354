"""Messages that EC2 and Auto Scaling contradict: late ones, and those that AWS cannot have written."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.interruption.cross_check import AGREES_WITHIN
from leeward.model.instance import CapacityType
from tests.events import event
from tests.fakes.builders import GROUP, an_instance

I = "i-0abc"  # noqa: E741
LATER = int(AGREES_WITHIN / timedelta(seconds=1)) + 1


def untouched(queue):
    """Nothing was claimed, tainted, started or answered."""
    system = queue.system
    return not (system.claims.records or system.executions.open or system.groups.answered) and not any(
        node.tainted for node in system.kubernetes.by_name.values()
    )


def outcomes(queue, body):
    """What becomes of it at its first delivery, and when AWS's answers have had time to follow."""
    queue.deliver(body)
    queue.system.clock.advance(seconds=LATER)
    queue.deliver(body)
    return [line["outcome"] for line in queue.log]


@pytest.mark.parametrize("state", ["stopping", "stopped"])
def test_a_stop_of_an_instance_that_runs_again_is_late_and_drains_nothing(connect, state):
    queue = connect()
    assert outcomes(queue, event("state_change", detail__state=state)) == ["retry", "done"]
    assert untouched(queue)
    assert f"the message says {state}, EC2 says running" in queue.log[-1]["message"]


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_end_that_ec2_does_not_know_of_is_malformed(connect, state):
    """Nothing brings an instance back from there: AWS has not written it."""
    queue = connect()
    assert outcomes(queue, event("state_change", detail__state=state)) == ["retry", "malformed"]
    assert untouched(queue)
    assert len(queue.system.dead_letters.sent) == 1


def test_a_state_change_of_which_ec2_learns_a_moment_later_is_acted_on(connect):
    queue = connect()
    assert queue.deliver(event("state_change")) == ["m0"]
    queue.happens("state_change")
    assert queue.deliver(event("state_change")) == []
    assert queue.system.executions.open == {"i-0abc-1"}


@pytest.mark.parametrize("kind", ["spot_interruption", "rebalance_recommendation"])
def test_a_spot_message_about_an_on_demand_instance_is_malformed_at_once(connect, kind):
    queue = connect(instances=[replace(an_instance(I), capacity_type=CapacityType.ON_DEMAND)])
    assert queue.deliver(event(kind)) == []
    assert [line["outcome"] for line in queue.log] == ["malformed"]
    assert untouched(queue)


@pytest.mark.parametrize("name", ["asg_terminate", "asg_terminate_direct", "asg_terminate_sns"])
def test_a_hook_that_no_longer_waits_is_not_acted_on(connect, name):
    """The instance has been through its warm pool and serves again."""
    queue = connect()
    assert outcomes(queue, event(name)) == ["retry", "done"]
    assert untouched(queue)
    assert "no longer waits" in queue.log[-1]["message"]


def test_a_hook_whose_instance_is_on_its_way_is_still_acted_on(connect):
    queue = connect()
    queue.system.groups.set_lifecycle(GROUP, I, "Terminating:Proceed")
    assert queue.deliver(event("asg_terminate")) == []
    assert queue.system.executions.open == {"i-0abc-1"}
