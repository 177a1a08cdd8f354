"""A call that AWS refuses for good, again and again: the message waits until the permission is fixed."""

from datetime import timedelta
from pathlib import Path

import pytest

from leeward.errors import AccessDeniedError, AwsUnavailableError, ThrottledError
from leeward.model.instance import CapacityType
from tests.fakes.builders import GROUP
from tests.state_machines.test_walks import a_pod
from tests.state_machines.walker import Walker


def spot():
    return Path("tests/events/spot_interruption.json").read_text()


@pytest.mark.parametrize(("port", "call"), [("claims", "claim"), ("executions", "start")])
def test_a_permission_that_is_missing_ten_times_in_a_row_crashes_nothing(connect, port, call):
    """The peer's defect: the same error three times in a row ends the process, a missing permission is a crash loop."""
    queue = connect()
    getattr(queue.system, port).fail(call, AccessDeniedError(f"not allowed to {call}"))
    for _ in range(10):
        assert queue.deliver(spot()) == ["m0"]
    assert f"not allowed to {call}" in queue.log[-1]["message"]
    getattr(queue.system, port).heal()
    assert queue.deliver(spot()) == []
    assert queue.system.executions.open == {"i-0abc-1"}


@pytest.mark.parametrize("error", [AwsUnavailableError, ThrottledError, AccessDeniedError])
def test_a_warned_spot_node_is_claimed_and_drained_by_what_its_group_lists_while_ec2_does_not_answer(connect, error):
    queue = connect()
    system, pod = queue.system, a_pod()
    system.kubernetes.put_pod(pod)
    system.instances.fail("describe", error("not now"), times=1000)
    assert queue.deliver(spot()) == []
    subject = system.claims.records["i-0abc"].subject
    assert (subject.group, subject.zone, subject.capacity_type) == (GROUP, "us-east-1a", CapacityType.SPOT)
    assert system.kubernetes.by_name[subject.node].tainted
    evicted, evict = [], system.kubernetes.evict
    system.kubernetes.evict = lambda *given: evicted.append(system.clock.now()) or evict(*given)
    warned = system.clock.now()
    Walker(system).run("i-0abc")
    assert evicted[0] < warned + timedelta(seconds=10)


def test_where_no_group_answers_either_the_warning_is_delivered_again(connect):
    queue = connect()
    queue.system.instances.fail("describe", AwsUnavailableError("not now"))
    queue.system.groups.fail("of_clusters", AwsUnavailableError("not now"))
    assert queue.deliver(spot()) == ["m0"]
    queue.system.instances.heal()
    assert queue.deliver(spot()) == []
