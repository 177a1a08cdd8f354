"""What a pause covers, and how its record changes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model.pause import PauseRecord, Pauses, PauseScope
from tests.fakes.builders import a_pause

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def in_force(*pauses, now=NOON):
    return PauseRecord(cluster="blue", version=1, pauses=pauses).in_force(now)


def test_a_pause_of_a_cluster_covers_every_group():
    pauses = in_force(a_pause())
    assert pauses.voluntary("web-a") == pauses.voluntary() == "cluster blue is paused: game day"


def test_a_pause_of_a_group_covers_that_group_alone():
    pauses = in_force(a_pause(group="web-a"))
    assert pauses.voluntary("web-a") == "group web-a is paused: game day"
    assert (pauses.voluntary("web-b"), pauses.voluntary()) == ("", "")


def test_interruptions_are_handled_unless_the_pause_is_of_everything():
    assert in_force(a_pause()).everything() == ""
    everything = in_force(a_pause(scope=PauseScope.ALL))
    assert everything.everything("web-a") == everything.voluntary("web-a") != ""


@pytest.mark.parametrize(("now", "paused"), [(NOON, True), (NOON + HOUR, False), (NOON + 2 * HOUR, False)])
def test_a_pause_ends_by_itself(now, paused):
    assert bool(in_force(a_pause(until=NOON + HOUR), now=now).voluntary()) is paused


def test_a_switch_that_cannot_be_read_stops_voluntary_work_alone():
    pauses = Pauses(cluster="blue", unreadable="AwsUnavailableError: no answer")
    assert "cannot be read (AwsUnavailableError: no answer)" in pauses.voluntary("web-a")
    assert pauses.everything("web-a") == ""


def test_a_second_pause_replaces_the_first_of_the_same_group():
    record = PauseRecord(cluster="blue").paused(a_pause()).paused(a_pause(group="web-a")).paused(a_pause(why="other"))
    assert [(pause.group, pause.why) for pause in record.pauses] == [("", "other"), ("web-a", "game day")]


def test_resuming_a_group_leaves_the_others_and_resuming_the_cluster_none():
    record = PauseRecord(cluster="blue").paused(a_pause(group="web-a")).paused(a_pause(group="web-b"))
    assert [pause.group for pause in record.resumed("web-a", "arn", "over").pauses] == ["web-b"]
    assert record.resumed("", "arn", "over").pauses == ()


def test_time_removes_what_has_ended_and_announces_what_has_no_end_once_a_day():
    ended, old = a_pause(group="a", until=NOON), a_pause(group="b", announced=NOON - 24 * HOUR)
    fresh, lasting = a_pause(group="c", announced=NOON - 23 * HOUR), a_pause(group="d", until=NOON + 2160 * HOUR)
    record = PauseRecord(cluster="blue", version=7, by="arn", pauses=(ended, old, fresh, lasting))
    assert record.in_force(NOON).due
    kept = record.kept(NOON)
    assert kept.pauses == (replace(old, announced=NOON), fresh, lasting)
    assert (kept.by, kept.kept(NOON), kept.in_force(NOON).due) == ("", kept, False)
