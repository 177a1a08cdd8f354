"""Which events a change of the pause switch causes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from leeward.model.pause import PauseRecord
from leeward.notifications.workflow_events import PauseEventType, events_of_pauses
from tests.fakes.builders import a_pause

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PAUSED = replace(PauseRecord(cluster="blue").paused(a_pause()), version=1)


def test_a_pause_says_who_why_since_and_until_when():
    (event,) = events_of_pauses(None, PAUSED, NOON)
    assert event.detail() == {
        "id": event.id,
        "event": "Pause Announced",
        "at": "2026-03-02T12:00:00Z",
        "cluster": "blue",
        "group": None,
        "scope": "voluntary",
        "since": "2026-03-02T09:00:00Z",
        "until": None,
        "by": a_pause().by,
        "why": "game day",
    }
    assert event.resources == ("blue",)


def test_a_pause_without_an_end_is_an_event_again_the_next_day_and_not_before():
    tomorrow = a_pause().announced + timedelta(days=1)
    assert PAUSED.kept(tomorrow - timedelta(seconds=1)) is PAUSED
    (event,) = events_of_pauses(PAUSED, replace(PAUSED.kept(tomorrow), version=2), tomorrow)
    (first,) = events_of_pauses(None, PAUSED, NOON)
    assert (event.type, event.by) == (PauseEventType.PAUSED, a_pause().by)
    assert event.id != first.id


def test_a_change_that_is_read_twice_is_the_same_event():
    assert events_of_pauses(None, PAUSED, NOON) == events_of_pauses(None, PAUSED, NOON)


def test_a_resumed_group_names_who_has_resumed_it_and_the_other_pause_makes_no_event():
    both = replace(PAUSED.paused(a_pause(group="web")), version=2)
    (event,) = events_of_pauses(both, replace(both.resumed("web", "arn:b", "fixed"), version=3), NOON)
    assert (event.type, event.pause.group, event.by, event.reason) == (PauseEventType.RESUMED, "web", "arn:b", "fixed")
    assert event.resources == ("blue", "web")


def test_a_pause_that_has_ended_by_itself_says_so():
    ending = replace(PauseRecord(cluster="blue").paused(a_pause(until=NOON)), version=1)
    (event,) = events_of_pauses(ending, replace(ending.kept(NOON), version=2), NOON)
    assert (event.type, event.by, event.reason) == (PauseEventType.RESUMED, "", "its time is over")
