"""The capacity ledger: what is to be offset, how a group parted with an instance, and which member offsets it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.capacity import NoOffset
from leeward.model.group import GroupInstance, ScalingActivity
from leeward.model.termination import Cause, CauseKind, Replacement, Status, TerminationRecord
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import Ending
from tests.fakes.builders import GROUP, a_group, a_subject, an_instance
from tests.fakes.clock import START
from tests.fakes.ledger import a_surge, by

I, OTHER = "i-0abc", "i-0def"  # noqa: E741
NEW, OTHERS = a_surge("i-0new"), a_surge("i-0second")
WARNED = Cause(id="event-1", kind=CauseKind.SPOT_INTERRUPTION, at=START)
# The first three are examples of the API reference and of the AWS knowledge centre.
TERMINATED_WITH_DECREMENT = (
    f"instance {I} was taken out of service in response to a user request, shrinking the capacity from 4 to 3."
)
DETACHED_WITH_DECREMENT = (
    f"instance {I} was detached in response to a user request, shrinking the capacity from 4 to 3."
)
SCALED_IN = (
    "At 2026-03-02T10:00:00Z a monitor alarm low in state ALARM triggered policy cpu changing the desired capacity "
    "from 4 to 3.  At 2026-03-02T10:00:03Z an instance was taken out of service in response to a difference between "
    "desired and actual capacity, shrinking the capacity from 4 to 3."
)
SCALED_OUT = "a user request update of AutoScalingGroup constraints changing the desired capacity from 3 to 4."
TERMINATED = f"instance {I} was taken out of service in response to a user request."
HEALTH = "an instance was taken out of service in response to an EC2 health check indicating it has been terminated."
BALANCED = (
    "instances were launched to balance instances in zones us-east-1b with other zones resulting in more than desired "
    "number of instances in the group.  At 2026-03-02T00:00:03Z an instance was taken out of service in response to a "
    "difference between desired and actual capacity, shrinking the capacity from 5 to 4."
)


def a_record(*, launched=(), causes=(WARNED,), offsets=None, times=None):
    return TerminationRecord(
        subject=a_subject(I),
        status=Status.OPEN,
        attempt=1,
        version=1,
        causes=causes,
        replacement=Replacement(launched=launched),
        offsets=offsets or {},
        times=times or {},
    )


def an_activity(cause, *, leaves=I, at=START):
    return ScalingActivity(at=at, cause=cause, leaves=leaves)


def test_without_a_launch_nothing_is_to_be_offset():
    assert capacity_ledger.to_offset(a_record()) == ()


def test_a_launch_is_to_be_offset_by_the_instance_for_which_it_was_made():
    assert capacity_ledger.to_offset(a_record(launched=("i-0new",))) == (NEW,)


def test_an_entry_that_was_passed_on_is_to_be_offset_too():
    record = a_record(launched=("i-0new",), causes=(WARNED, capacity_ledger.surplus(OTHERS, START)))
    assert capacity_ledger.to_offset(record) == (NEW, OTHERS)


@pytest.mark.parametrize("settlement", [by(I), by(OTHER), *NoOffset])
def test_an_entry_that_is_settled_is_not_to_be_offset_any_more(settlement):
    assert capacity_ledger.to_offset(a_record(launched=("i-0new",), offsets={NEW: settlement})) == ()


def test_only_what_another_has_to_offset_is_passed_on():
    third = a_surge("i-0third")
    record = a_record(offsets={NEW: by(I), OTHERS: NoOffset.WRITTEN_OFF, third: by("i-0fourth")})
    assert capacity_ledger.passed_on(record) == {third: "i-0fourth"}


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (TERMINATED_WITH_DECREMENT, Ending.SHRUNK),
        (DETACHED_WITH_DECREMENT, Ending.SHRUNK),
        (TERMINATED, Ending.REPLACED),
        (HEALTH, Ending.REPLACED),
        (BALANCED, Ending.REPLACED),
    ],
)
def test_how_a_group_parted_with_an_instance_is_read_from_its_own_sentence(cause, expected):
    assert capacity_ledger.ending(I, [an_activity(cause)]) is expected


def test_a_group_that_has_said_nothing_about_the_instance_leaves_it_open():
    assert capacity_ledger.ending(I, [an_activity(TERMINATED_WITH_DECREMENT, leaves=OTHER)]) is Ending.UNKNOWN


@pytest.mark.parametrize(
    ("cause", "expected"),
    [(SCALED_IN, True), (SCALED_OUT, False), (BALANCED, False), (TERMINATED_WITH_DECREMENT, False)],
)
def test_a_smaller_desired_size_is_an_owners_intent_and_a_decrement_of_ours_is_not(cause, expected):
    assert capacity_ledger.shrunk_since([an_activity(cause)], START) is expected


def test_a_wish_from_before_the_launch_forgives_nothing():
    assert not capacity_ledger.shrunk_since([an_activity(SCALED_IN, at=START - timedelta(seconds=1))], START)


@pytest.mark.parametrize("minutes", [-10, 0, 10])
def test_a_smaller_size_counts_from_the_time_of_its_sentence_and_not_from_when_the_group_acts_on_it(minutes):
    """The group may act much later: a launch of ours between the two was not in the owner's view."""
    said = (START + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    cause = (
        f"At {said} a user request explicitly set group desired capacity changing the desired capacity from 13 to 10.  "
        f"At 2026-03-02T10:20:00Z an instance was taken out of service in response to a difference between desired and "
        f"actual capacity, shrinking the capacity from 13 to 12."
    )
    activity = an_activity(cause, at=START + timedelta(minutes=20))
    assert capacity_ledger.shrunk_since([activity], START) is (minutes >= 0)


def test_the_youngest_member_that_stays_comes_first():
    members = ["i-01", "i-02", "i-03", "i-04", "i-05"]
    states = ["InService", "Pending", "Terminating:Wait", "Standby", "InService"]
    group = replace(
        a_group(GROUP),
        instances=tuple(GroupInstance(id=m, zone="a", lifecycle=s) for m, s in zip(members, states, strict=True)),
    )
    ages = {m: replace(an_instance(m), launched=START + timedelta(hours=n)) for n, m in enumerate(members)}
    ages["i-05"] = replace(ages["i-05"], state="shutting-down")
    assert [member.id for member in capacity_ledger.candidates(group, ages)] == ["i-02", "i-01"]


def test_a_group_is_larger_since_the_launch_or_since_the_entry_was_passed_on():
    launched, passed = START + timedelta(minutes=1), START + timedelta(minutes=2)
    record = a_record(
        causes=(WARNED, capacity_ledger.surplus(OTHERS, passed)), times={"replacement": launched, "claimed": START}
    )
    assert capacity_ledger.larger_since(record, NEW) == launched
    assert capacity_ledger.larger_since(record, OTHERS) == passed


def test_an_instance_that_has_passed_an_entry_on_is_not_asked_for_it_again():
    assert capacity_ledger.was_requested(a_record(offsets={NEW: by(OTHER)}), NEW)
    assert capacity_ledger.was_requested(a_record(causes=(capacity_ledger.surplus(OTHERS, START),)), OTHERS)
    assert not capacity_ledger.was_requested(a_record(), OTHERS)
