"""Events that a message writes on its Node: true at that moment, silent about a drain that is over."""

from datetime import timedelta

import pytest

from tests.events import event
from tests.fakes.builders import a_policy, policies

I = "i-0abc"  # noqa: E741
FAR_AHEAD = "Mon, 16 Mar 2026 18:00:00 GMT"


def state_change(state):
    return event("state_change", id=f"state-{state}", detail={"instance-id": I, "state": state})


def progressed(queue, *names):
    """The termination of the instance has come this far; ten minutes later no Event is a repeat of another."""
    now = queue.system.clock.now()
    queue.system.claims.note(I, times=dict.fromkeys(names, now))
    queue.system.clock.advance(seconds=timedelta(minutes=10).total_seconds())


def messages(queue):
    return [written.message for written in queue.system.kubernetes.events]


@pytest.fixture
def warned(connect):
    """A node that EC2 takes back, its termination under way."""
    queue = connect(written=policies(a_policy()))
    assert queue.deliver(event("spot_interruption")) == []
    assert len(messages(queue)) == 1
    return queue


def test_a_warning_announces_the_drain(warned):
    assert messages(warned)[0].startswith("Leeward will drain this node: i-0abc: EC2 takes the spot instance")


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_the_end_of_an_instance_that_was_drained_writes_no_event(warned, state):
    progressed(warned, "draining", "drained", "terminating")
    warned.system.instances.set_state(I, state)
    assert warned.deliver(state_change(state)) == []
    assert len(messages(warned)) == 1


def test_the_lifecycle_action_of_a_termination_that_leeward_requested_writes_no_event(warned):
    progressed(warned, "terminating", "draining")
    warned.happens("asg_terminate")
    assert warned.deliver(event("asg_terminate")) == []
    assert len(warned.system.claims.records[I].causes) == 2
    assert len(messages(warned)) == 1


def test_a_warning_that_joins_after_the_drain_writes_no_event(warned):
    progressed(warned, "draining", "drained")
    assert warned.deliver(event("rebalance_recommendation")) == []
    assert len(messages(warned)) == 1


def test_a_cause_that_joins_a_drain_says_that_the_node_is_draining(warned):
    progressed(warned, "draining")
    assert warned.deliver(event("rebalance_recommendation")) == []
    assert messages(warned)[1].startswith("Leeward is draining this node: i-0abc: rebalance recommendation")


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_instance_that_others_ended_is_removed_not_drained(connect, state):
    queue = connect()
    queue.system.instances.set_state(I, state)
    assert queue.deliver(state_change(state)) == []
    assert messages(queue) == [f"Leeward will remove this Node: i-0abc: the instance is {state}"]


def test_a_change_far_ahead_says_until_when(connect):
    queue = connect()
    queue.happens("scheduled_change")
    assert queue.deliver(event("scheduled_change", detail__startTime=FAR_AHEAD)) == []
    (message,) = messages(queue)
    assert message.startswith("Leeward will drain this node before 2026-03-16T18:00:00Z, as soon as its budgets allow")
