"""What is reported of a termination, and that what is reported twice is known by its id."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.termination import Cause, CauseKind, Outcome, Replacement, Status, TerminationRecord
from leeward.notifications.events import MAX_BLOCKERS, EventType, events_of_change
from tests.fakes.builders import a_subject

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SPOT = Cause(
    id="warning#i-0abc",
    kind=CauseKind.SPOT_INTERRUPTION,
    at=NOW,
    deadline=NOW + timedelta(minutes=2),
    reason="EC2 takes it",
)
HOOK = Cause(id="hook#i-0abc", kind=CauseKind.ASG_TERMINATE, at=NOW, hook="leeward-terminate")
BLOCKED = ("shop/web-1: pdb shop/web allows no disruption now",)


def a_record(*causes, times=(), **more):
    standing = {"subject": a_subject(), "status": Status.OPEN, "attempt": 1, "version": 1}
    return TerminationRecord(
        **(standing | more), causes=causes or (SPOT,), times=dict.fromkeys(("claimed", *times), NOW)
    )


def turns(before, after):
    return [event.type for event in events_of_change(before, after, NOW)]


def test_the_first_cause_and_each_that_joins_are_detected_once():
    assert turns(None, a_record()) == [EventType.DETECTED]
    (joined,) = events_of_change(a_record(SPOT), a_record(SPOT, HOOK), NOW)
    assert joined.type is EventType.DETECTED
    assert [cause["hook"] for cause in joined.detail()["causes"]] == ["leeward-terminate"]
    assert turns(a_record(SPOT, HOOK), a_record(SPOT, HOOK, pods_evicted=3)) == []


def test_the_start_of_a_drain_is_reported_once_an_attempt():
    draining = a_record(times=("draining",))
    assert turns(a_record(), draining) == [EventType.STARTED]
    assert turns(draining, replace(draining, pods_evicted=1)) == []
    assert turns(draining, replace(draining, attempt=2)) == [EventType.STARTED]


def test_blocked_is_reported_with_pod_and_until_when_and_again_only_for_other_pods():
    draining = a_record(times=("draining",))
    draining = replace(draining, times={**draining.times, "until": NOW + timedelta(minutes=15)})
    blocked = replace(draining, blocked_by=BLOCKED)
    (reported,) = events_of_change(draining, blocked, NOW)
    assert reported.type is EventType.BLOCKED
    assert reported.detail()["blockers"] == [
        {"pod": "shop/web-1", "why": "pdb shop/web allows no disruption now", "until": "2026-03-01T12:02:00Z"}
    ]
    assert turns(blocked, replace(blocked, blocked_by=("shop/web-1: pdb shop/web allows 0 of 3",))) == []
    assert turns(blocked, replace(blocked, blocked_by=(*BLOCKED, "shop/db-0: pdb shop/db"))) == [EventType.BLOCKED]
    assert turns(blocked, replace(blocked, blocked_by=())) == []


def test_without_a_deadline_a_blocker_lasts_until_the_drain_gives_up():
    record = a_record(HOOK, blocked_by=BLOCKED)
    record = replace(record, times={**record.times, "until": NOW + timedelta(minutes=15)})
    (reported,) = events_of_change(replace(record, blocked_by=()), record, NOW)
    assert reported.detail()["blockers"][0]["until"] == "2026-03-01T12:15:00Z"


def test_what_a_node_waits_for_without_a_pod_is_reported_with_its_own_end_and_is_no_block():
    waits = ("target i-0abc:30080 of k8s-web (healthy), until 2026-03-01T12:00:40Z",)
    waiting = a_record(blocked_by=waits)
    assert turns(a_record(), waiting) == []
    (reported,) = events_of_change(waiting, replace(waiting, blocked_by=(*waits, *BLOCKED)), NOW)
    assert reported.detail()["blockers"][0] == {"pod": None, "why": waits[0], "until": "2026-03-01T12:00:40Z"}


def test_a_terminated_instance_is_finished_with_its_outcome_and_what_replaced_it():
    record = a_record(replacement=Replacement(launched=("i-0new",)), pods_evicted=4)
    (reported,) = events_of_change(record, replace(record, status=Status.CLOSED, outcome=Outcome.TERMINATED), NOW)
    assert reported.type is EventType.FINISHED
    detail = reported.detail()
    assert (detail["outcome"], detail["replacements"], detail["podsEvicted"]) == ("terminated", ["i-0new"], 4)


def test_a_node_that_was_returned_is_failed_and_one_that_was_spared_is_finished():
    record = a_record(times=("draining",))
    returned = replace(record, status=Status.CLOSED, outcome=Outcome.RETURNED_TO_SERVICE)
    assert turns(record, returned) == [EventType.FINISHED]
    (reported,) = events_of_change(record, replace(returned, failure="PodEvictionFailure: shop/web-1"), NOW)
    assert (reported.type, reported.reason) == (EventType.FAILED, "PodEvictionFailure: shop/web-1")


def test_a_step_that_used_up_its_retries_is_reported_with_its_error_and_each_next_failure_again():
    record = a_record(failure="AccessDeniedError: autoscaling:Terminate")
    failed = replace(record, times={**record.times, "retry": NOW + timedelta(minutes=1)})
    (reported,) = events_of_change(record, failed, NOW)
    assert reported.type is EventType.FAILED
    assert reported.reason == "AccessDeniedError: autoscaling:Terminate; tried again at 2026-03-01T12:01:00Z"
    later = replace(failed, times={**failed.times, "retry": NOW + timedelta(minutes=3)})
    (again,) = events_of_change(failed, later, NOW)
    assert again.id != reported.id


def test_a_change_that_is_delivered_twice_is_reported_under_the_same_id():
    before, after = a_record(SPOT), a_record(SPOT, HOOK, times=("draining",), blocked_by=BLOCKED)
    first, second = events_of_change(before, after, NOW), events_of_change(before, after, NOW + timedelta(hours=1))
    assert [event.id for event in first] == [event.id for event in second]
    assert len({event.id for event in first}) == len(first) == 3


@pytest.mark.parametrize("pods", [1, MAX_BLOCKERS, 5000])
def test_an_event_fits_into_the_bus_however_much_is_blocked(pods):
    lines = tuple(f"namespace-{n}/{'long-' * 20}{n}: {'pdb ' + 'x' * 60} allows no disruption" for n in range(pods))
    (reported,) = events_of_change(a_record(), a_record(blocked_by=lines), NOW)
    assert len(json.dumps(reported.detail())) < 64 * 1024
