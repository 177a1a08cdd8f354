"""The detach deadline and what follows from it, on records alone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.model.termination import (
    Cause,
    CauseKind,
    Status,
    TerminationRecord,
    detach_deadline,
    is_abrupt,
    known_deadline,
    taken_at,
)
from leeward.policy.document import SETTLES, DrainPolicy, Heartbeat
from leeward.termination import decisions, heartbeats
from leeward.termination.deadlines import LAUNCH_WITHIN, drain_end, out_of_time, release_at, settle_seconds
from tests.fakes.builders import a_subject, our_hook
from tests.fakes.clock import START as NOW

MINUTE = timedelta(minutes=1)
MOMENT = timedelta(microseconds=1)


def a_record(*causes, **more):
    return TerminationRecord(subject=a_subject(), status=Status.OPEN, attempt=1, version=1, causes=causes, **more)


def a_cause(kind, minutes=None, id_=None, **more):
    deadline = None if minutes is None else NOW + minutes * MINUTE
    return Cause(id=id_ or f"{kind}#{minutes}", kind=kind, at=NOW, deadline=deadline, **more)


@pytest.mark.parametrize("kind", list(CauseKind))
def test_the_detach_deadline_comes_only_from_causes_in_which_ec2_takes_the_instance(kind):
    takes = {"spot_interruption", "capacity_reservation", "capacity_block", "scheduled_change"}
    found = detach_deadline(a_record(a_cause(kind, 5, hook="leeward-terminate", hook_ours=True)), NOW)
    assert found == (NOW + 5 * MINUTE if kind.value in takes else None)


def announced(minutes, after, id_="arn:a"):
    """Maintenance in so many minutes, announced so many minutes after the beginning."""
    cause = a_cause(CauseKind.SCHEDULED_CHANGE, minutes, f"{id_}#{minutes}#i")
    return replace(cause, at=NOW + after * MINUTE)


@pytest.mark.parametrize("dates", [(2000, 600), (600, 2000)], ids=["nearer", "further away"])
@pytest.mark.parametrize("late", [True, False], ids=["the first message comes late", "in order"])
def test_of_a_health_event_the_date_counts_that_was_announced_last(dates, late):
    causes = [announced(minutes, after) for minutes, after in zip(dates, (0, 15), strict=True)]
    record = a_record(*(reversed(causes) if late else causes))
    assert detach_deadline(record, NOW) == NOW + dates[1] * MINUTE


def test_of_two_dates_announced_at_the_same_moment_the_earlier_counts():
    assert detach_deadline(a_record(announced(600, 0), announced(30, 0)), NOW) == NOW + 30 * MINUTE


def test_of_several_health_events_the_earliest_date_counts():
    first, moved = announced(30, 0), announced(600, 1)
    other = a_cause(CauseKind.SCHEDULED_CHANGE, 60, "arn:b#i")
    assert detach_deadline(a_record(first), NOW) == NOW + 30 * MINUTE
    assert detach_deadline(a_record(moved, first), NOW) == NOW + 600 * MINUTE
    assert detach_deadline(a_record(first, moved, other), NOW) == NOW + 60 * MINUTE
    assert detach_deadline(a_record(first, moved, other), NOW + 61 * MINUTE) == NOW + 600 * MINUTE
    assert detach_deadline(a_record(first, other), NOW + 61 * MINUTE) is None


def test_the_deadline_of_a_manual_drain_is_shown_as_well():
    spot, manual = a_cause(CauseKind.SPOT_INTERRUPTION, 2), a_cause(CauseKind.MANUAL, 1)
    assert known_deadline(a_record(spot, manual), NOW) == NOW + MINUTE
    assert detach_deadline(a_record(spot, manual), NOW) == NOW + 2 * MINUTE


def test_an_instance_is_released_five_seconds_before_its_detach_deadline_and_not_after():
    record = a_record(a_cause(CauseKind.SPOT_INTERRUPTION, 2))
    release = release_at(record, NOW)
    assert release == NOW + timedelta(seconds=115)
    assert out_of_time(record, DrainPolicy(), NOW, release - MOMENT) is None
    assert out_of_time(record, DrainPolicy(), NOW, release) == "the instance is being taken now"


def test_maintenance_releases_nothing_before_the_drains_own_time_out():
    record = a_record(a_cause(CauseKind.SCHEDULED_CHANGE, 5))
    assert release_at(record, NOW) is None
    assert out_of_time(record, DrainPolicy(), NOW, NOW + 14 * MINUTE) is None
    assert out_of_time(record, DrainPolicy(), NOW, NOW + 15 * MINUTE) == "drain.timeout of 900 s has passed"


def test_a_deadline_of_the_owners_extends_a_drain_and_never_shortens_it():
    for minutes, end in ((5, 15), (30, 30)):
        policy = DrainPolicy(termination_grace_period=minutes * MINUTE)
        assert drain_end(a_record(), policy, NOW) == NOW + end * MINUTE
        assert drain_end(a_record(a_cause(CauseKind.MANUAL, minutes)), DrainPolicy(), NOW) == NOW + end * MINUTE


def test_a_termination_grace_period_counts_from_the_first_drain_of_the_period():
    policy = DrainPolicy(termination_grace_period=30 * MINUTE)
    record = a_record(times={"begun": NOW - 10 * MINUTE})
    assert drain_end(record, policy, NOW) == NOW + 20 * MINUTE


def test_the_time_out_of_our_hook_is_counted_from_its_own_cause():
    hook, heartbeat = our_hook(), Heartbeat(until=10 * MINUTE)
    announced = Cause(id="health", kind=CauseKind.SCHEDULED_CHANGE, at=NOW - timedelta(days=3))
    own = Cause(id="token", kind=CauseKind.ASG_TERMINATE, at=NOW, hook=hook.name, hook_ours=True)
    record = a_record(announced, own)
    later = {minutes: NOW + minutes * MINUTE for minutes in (2, 3, 10)}
    assert heartbeats.heartbeats_due([hook], record, heartbeat, later[2], timedelta()) == ()
    assert heartbeats.heartbeats_due([hook], record, heartbeat, later[3], timedelta()) == (hook,)
    assert heartbeats.heartbeats_due([hook], record, heartbeat, later[10], timedelta()) == ()
    assert heartbeats.next_heartbeats([hook], record, heartbeat, later[10]) == []


@pytest.mark.parametrize(
    ("seconds", "passed", "due"), [(60, 0, 1), (60, 10, 1), (120, 20, 0), (120, 30, 1), (300, 149, 0)]
)
def test_a_hook_that_ends_before_the_next_chance_is_heartbeaten_before_half_of_its_time_out(seconds, passed, due):
    """A step may hang until its function ends, and reconciliations are a minute apart."""
    hook = our_hook(heartbeat_timeout=seconds)
    record = a_record(Cause(id="token", kind=CauseKind.ASG_TERMINATE, at=NOW, hook=hook.name, hook_ours=True))
    now = NOW + timedelta(seconds=passed)
    assert len(heartbeats.heartbeats_due([hook], record, Heartbeat(), now, timedelta())) == due


def test_a_hook_without_an_event_is_heartbeaten_at_once_and_counts_from_then():
    hook, heartbeat = our_hook(), Heartbeat(until=10 * MINUTE)
    record = a_record(Cause(id="health", kind=CauseKind.SCHEDULED_CHANGE, at=NOW - timedelta(days=3)))
    assert heartbeats.heartbeats_due([hook], record, heartbeat, NOW, timedelta()) == (hook,)
    beaten = a_record(*record.causes, times={"held": NOW}, heartbeats={hook.name: NOW})
    assert heartbeats.heartbeats_due([hook], beaten, heartbeat, NOW + MINUTE, timedelta()) == ()
    assert heartbeats.heartbeats_due([hook], beaten, heartbeat, NOW + 9 * MINUTE, timedelta()) == (hook,)
    assert heartbeats.heartbeats_due([hook], beaten, heartbeat, NOW + 10 * MINUTE, timedelta()) == ()


@given(st.integers(1, 7200), st.none() | st.integers(30, 3600))
def test_an_interval_is_never_more_than_half_of_the_hooks_time_out(timeout, interval):
    heartbeat = Heartbeat(interval=None if interval is None else timedelta(seconds=interval))
    found = heartbeats.heartbeat_interval(heartbeat, our_hook(heartbeat_timeout=timeout)).total_seconds()
    half = max(timeout / 2, 1)
    assert found == (half if interval is None else min(half, interval))


def test_pauses_grow_with_what_was_waited_up_to_ten_minutes():
    found = [decisions.pause_seconds(waited=minutes * MINUTE, now=NOW) for minutes in (0, 1, 2, 10, 60, 200, 2880)]
    assert found == [2, 15, 30, 30, 180, 600, 600]
    soon = NOW + timedelta(seconds=7)
    assert decisions.pause_seconds(waited=2880 * MINUTE, limits=[soon], now=NOW) == 7


@pytest.mark.parametrize("kind", [CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION])
def test_a_warning_that_has_not_come_true_within_minutes_has_no_effect_any_more(kind):
    record = a_record(a_cause(kind, 0))
    assert [is_abrupt(record, NOW + minutes * MINUTE) for minutes in (0, 5, 6)] == [True, True, False]
    assert taken_at(record, NOW + 5 * MINUTE) == NOW
    assert taken_at(record, NOW + 6 * MINUTE) is None
    assert out_of_time(record, DrainPolicy(), NOW + 6 * MINUTE, NOW + 7 * MINUTE) is None


def test_the_end_of_a_capacity_block_stands():
    record = a_record(a_cause(CauseKind.CAPACITY_BLOCK, 0))
    assert taken_at(record, NOW + 60 * MINUTE) == NOW


def test_the_empty_node_of_an_upgrade_waits_for_the_launch_that_it_offsets_unless_another_cause_takes_it():
    early = a_cause(CauseKind.UPGRADE, awaits_launch=True)
    drained = {"drained": NOW - 2 * MINUTE}
    others = (a_cause(CauseKind.UPGRADE, id_="offset"), a_cause(CauseKind.SURPLUS), a_cause(CauseKind.MANUAL))
    waits = settle_seconds(a_record(early, times=drained), SETTLES, NOW)
    assert waits == (LAUNCH_WITHIN - 2 * MINUTE).total_seconds()
    assert [settle_seconds(a_record(early, other, times=drained), SETTLES, NOW) for other in others] == [0, 0, 0]
    assert settle_seconds(a_record(early, times=drained), SETTLES, NOW + 3 * MINUTE) == 0, "the group replaces it"


@pytest.mark.parametrize(("moved", "left"), [(None, 0), (-120, 0), (-31, 29), (0, 60)])
def test_a_pod_that_came_and_left_after_the_node_was_empty_starts_the_settle_time_again(moved, left):
    times = {"drained": NOW - timedelta(seconds=91)}
    times |= {} if moved is None else {"moved": NOW + timedelta(seconds=moved)}
    assert settle_seconds(a_record(a_cause(CauseKind.MANUAL), times=times), timedelta(seconds=60), NOW) == left
