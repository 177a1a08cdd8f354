"""Which facts a step may go by: late, lost, doubled and disordered messages, our own requests, time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.group import GroupFacts
from leeward.model.seen import Seen, SeenGroup, SeenInstance
from leeward.model.termination import Cause, CauseKind, Status, TerminationRecord
from leeward.termination.situation import (
    LAUNCH_MAX_AGE,
    MAX_AGE,
    TRANSIENT_MAX_AGE,
    Freshness,
    facts,
    group_fact,
    instance_fact,
    seconds_left,
)
from tests.fakes.builders import GROUP, a_subject, our_hook
from tests.fakes.clock import START

FACTS = GroupFacts(name=GROUP, tags={})


def after(seconds):
    return START + timedelta(seconds=seconds)


def saw(state="running", lifecycle="InService", at=0.0):
    group = SeenGroup(at=after(at), facts=FACTS, lifecycle=lifecycle, hooks=(our_hook(),))
    return Seen(instance=SeenInstance(at=after(at), state=state), group=group)


def a_record(*causes, seen=None, **times):
    return TerminationRecord(
        subject=a_subject(),
        status=Status.OPEN,
        attempt=1,
        version=1,
        causes=causes,
        times={name: after(at) for name, at in times.items()},
        seen=saw() if seen is None else seen,
    )


def reported(state, at):
    return Cause(id=f"{state}-{at}", kind=CauseKind.STATE_CHANGE, at=after(at), state=state)


def held(at, hook="leeward-terminate"):
    return Cause(id=f"hook-{at}", kind=CauseKind.ASG_TERMINATE, at=after(at), hook=hook, hook_ours=True)


def lifecycle(record, at):
    found = group_fact(record, after(at))
    return found.lifecycle if found else "ask"


def state(record, at):
    found = instance_fact(record, after(at))
    return found.state if found else "ask"


def test_what_was_seen_serves_for_some_minutes():
    record, end = a_record(), MAX_AGE.total_seconds()
    assert (state(record, end - 1), lifecycle(record, end - 1)) == ("running", "InService")
    assert (state(record, end), lifecycle(record, end)) == ("ask", "ask")


def test_nothing_is_known_before_the_first_look():
    record = a_record(seen=Seen())
    assert (state(record, 0), lifecycle(record, 0)) == ("ask", "ask")


def test_a_claim_says_how_ec2_saw_the_instance():
    record = replace(a_record(seen=Seen(), claimed=0), subject=replace(a_subject(), state="running"))
    assert (state(record, 5), state(record, MAX_AGE.total_seconds())) == ("running", "ask")


@pytest.mark.parametrize("need", [Freshness.ALL])
def test_what_must_not_be_done_on_a_stale_fact_always_asks(need):
    found = facts(a_record(), after(0), need)
    assert (found.instance, found.group) == (None, None)


def test_what_depends_on_the_group_asks_for_it_and_for_an_instance_seen_a_while_ago():
    soon, later = (facts(a_record(), after(at), Freshness.GROUP) for at in (1, LAUNCH_MAX_AGE.total_seconds()))
    assert soon.instance is not None
    assert (soon.group, later.group, later.instance) == (None, None, None)


@pytest.mark.parametrize("state_reported", ["shutting-down", "terminated"])
def test_that_ec2_has_ended_it_is_final_whatever_is_reported_afterwards(state_reported):
    record = a_record(reported(state_reported, 10), reported("stopping", 20), seen=saw(at=30))
    assert state(record, 10_000) == state_reported


def test_duplicates_and_disorder_of_its_end_change_nothing():
    record = a_record(reported("terminated", 20), reported("shutting-down", 10), reported("shutting-down", 11))
    assert state(record, 30) == "terminated"


@pytest.mark.parametrize("state_reported", ["stopping", "stopped", "running"])
def test_any_other_word_of_ec2_says_that_it_is_time_to_ask(state_reported):
    assert state(a_record(reported(state_reported, 10)), 11) == "ask"
    assert state(a_record(reported(state_reported, 10), seen=saw(at=100)), 101) == "running"


def test_a_message_that_was_not_confirmed_says_nothing():
    unconfirmed = Cause(id="e", kind=CauseKind.STATE_CHANGE, at=after(10), reason="the instance is terminated")
    assert state(a_record(unconfirmed), 20) == "running"


@pytest.mark.parametrize("seen_state", ["pending", "stopping", "stopped"])
def test_a_state_that_does_not_last_is_asked_again_soon(seen_state):
    record = a_record(seen=saw(seen_state))
    assert (state(record, 9), state(record, TRANSIENT_MAX_AGE.total_seconds())) == (seen_state, "ask")


def test_its_hook_waits_from_the_message_on():
    assert lifecycle(a_record(held(20)), 21) == "Terminating:Wait"
    assert lifecycle(a_record(held(20), held(21)), 100) == "Terminating:Wait"


def test_a_late_message_of_a_hook_does_not_overtake_a_later_look():
    assert lifecycle(a_record(held(20), seen=saw(lifecycle="Terminating:Proceed", at=60)), 61) == "Terminating:Proceed"
    assert lifecycle(a_record(held(20), seen=saw(at=60)), 61) == "InService"


def test_clocks_may_differ_by_some_seconds():
    assert lifecycle(a_record(held(20), seen=saw(at=25)), 26) == "Terminating:Wait"


def test_after_our_request_a_message_is_waited_for_and_then_aws_is_asked():
    record = a_record(terminating=20)
    assert lifecycle(record, 21) == "Terminating"
    assert lifecycle(record, 20 + TRANSIENT_MAX_AGE.total_seconds()) == "ask"
    assert lifecycle(a_record(held(22), terminating=20), 60) == "Terminating:Wait"


def test_a_request_of_before_the_last_look_says_nothing():
    assert lifecycle(a_record(seen=saw(lifecycle="Terminating:Wait", at=30), terminating=20), 60) == "Terminating:Wait"


def test_a_look_whose_clock_was_ahead_does_not_hide_our_request():
    """Another function has asked, whose clock is some seconds behind: the earlier word is no longer good."""
    record = a_record(seen=saw(lifecycle="InService", at=24), terminating=20)
    assert lifecycle(record, 25) == "Terminating"
    assert lifecycle(record, 60) != "InService"


def test_once_answered_the_end_is_waited_for_and_then_aws_is_asked():
    record = a_record(held(20), answered=50)
    assert lifecycle(record, 51) == "Terminating:Proceed"
    assert lifecycle(record, 50 + TRANSIENT_MAX_AGE.total_seconds()) == "ask"


def test_a_hook_that_is_seen_to_wait_after_our_answer_still_waits():
    record = a_record(held(20), seen=saw(lifecycle="Terminating:Wait", at=60), answered=50)
    assert lifecycle(record, 100) == "Terminating:Wait"


@pytest.mark.parametrize("word", [None, "Terminating:Retained", "Warmed:Stopped", "Detaching", "Terminating"])
def test_a_word_that_does_not_last_is_asked_again_soon(word):
    record = a_record(seen=saw(lifecycle=word))
    assert (lifecycle(record, 9), lifecycle(record, TRANSIENT_MAX_AGE.total_seconds())) == (word, "ask")


def test_a_message_does_not_bring_back_what_has_left_its_group():
    assert lifecycle(a_record(held(5), seen=saw(lifecycle=None)), 6) is None


def test_how_long_the_facts_of_a_step_serve():
    assert seconds_left(a_record(), after(0)) == MAX_AGE.total_seconds()
    assert seconds_left(a_record(held(20), answered=50), after(52)) == 8
