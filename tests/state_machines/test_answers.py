"""What queue processors of terminations are known to get wrong about hooks, on the whole machine: an answer that fails
after a good drain, and a hook and a warning for the same instance."""

from datetime import timedelta

import pytest

from leeward.errors import AwsUnavailableError, ThrottledError
from leeward.model.termination import CauseKind, Outcome, Status
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import GROUP, our_hook
from tests.fakes.clock import START
from tests.state_machines.test_walks import I, a_pod, a_system, claim, ended, spot
from tests.state_machines.walker import Walker

HOOK = "leeward-terminate"


@pytest.mark.parametrize("error", [ThrottledError("Rate exceeded"), AwsUnavailableError("503")])
@pytest.mark.parametrize("times", [1, 8])
def test_an_answer_that_fails_after_a_good_drain_is_given_again_and_the_heartbeats_end(error, times):
    """The peer's defect: it is only logged, the redelivery is ignored as processed, and heartbeats go on for ever."""
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook=HOOK)
    system.groups.fail("complete", error, times=times)
    assert Walker(system).run(I).ended == "Terminated"
    assert [hook for _, hook, _, _ in system.groups.answered] == [HOOK]
    assert system.kubernetes.done == ["evict shop/web-1"]
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)
    beats = len(system.groups.heartbeats)
    for _ in range(5):  # an answered hook does not wait
        system.clock.advance(minutes=5)
        reconcile_once(system.ports)
    assert len(system.groups.heartbeats) == beats


@pytest.mark.parametrize("state", ["Drain", "Settle", "AnswerHooks", "RemoveNode", "Finish"])
def test_a_hook_that_joins_a_spot_drain_at_any_step_is_answered_too(state):
    """The peer's defect: when the first event's drain ends, all others of the node count as processed, and the hook of
    one that waits is never completed.
    """
    system = a_system(pods=[a_pod()])
    spot(system)
    system.ports.groups.put_hook(our_hook(), default_result="CONTINUE")

    def the_group_notices(entered, _):
        if entered == state and system.claims.records[I].version == 1:
            if not system.groups.history:
                system.groups.begin_terminating(GROUP, I)
            claim(system, CauseKind.ASG_TERMINATE, id_="lifecycle", hook=HOOK)

    walk = Walker(system, before=the_group_notices).run(I)
    assert state in walk.states
    assert walk.ended == "Terminated"
    assert [hook for _, hook, _, _ in system.groups.answered] == [HOOK]
    assert len(system.claims.records[I].causes) == 2
    assert ended(system) == (Status.CLOSED, Outcome.TERMINATED)


def test_a_hook_that_was_put_during_the_drain_is_answered_when_its_message_comes():
    """The hooks of the group were read before it: for three minutes a step would go by them."""
    system = a_system(pods=[a_pod()])
    claim(system, CauseKind.MANUAL)
    asked = []

    def the_group_has_a_hook(entered, _):
        if entered == "Terminate":
            asked.append(system.clock.now())
            system.ports.groups.put_hook(our_hook(), default_result="CONTINUE")
        if entered == "WaitForTheEnd" and system.claims.records[I].version == 1:
            claim(system, CauseKind.ASG_TERMINATE, id_="lifecycle", hook=HOOK)

    assert Walker(system, before=the_group_has_a_hook).run(I).ended == "Terminated"
    assert [hook for _, hook, _, _ in system.groups.answered] == [HOOK]
    assert system.clock.now() - asked[0] < timedelta(seconds=30)


def test_the_hook_of_an_instance_that_is_gone_already_is_answered_without_a_drain():
    """The peer's defect: the message is deleted and the hook left to its time-out."""
    system = a_system(hooks=[our_hook()], pods=[a_pod()])
    system.groups.begin_terminating(GROUP, I)
    claim(system, CauseKind.ASG_TERMINATE, hook=HOOK)
    system.instances.set_state(I, "terminated")
    walk = Walker(system).run(I)
    assert walk.ended == "Terminated"
    assert "Drain" not in walk.states
    assert [hook for _, hook, _, _ in system.groups.answered] == [HOOK]
    assert system.clock.now() - START < timedelta(minutes=2)
