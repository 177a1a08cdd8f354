"""Which events a change of an upgrade's record causes, and that a repeated step causes none."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.cli.main import build_parser
from leeward.notifications.workflow_events import UpgradeEventType, events_of_upgrades
from leeward.upgrade.control import Hold
from leeward.upgrade.record import ControlRequest, NotedHold, UpgradeRequest
from tests.unit.notifications.workflows import CANARY, NOON, PERSON, an_upgrade, turns, upgrade_events

STARTED, HELD, RESUMED = UpgradeEventType.STARTED, UpgradeEventType.HELD, UpgradeEventType.RESUMED
FAILED, FINISHED = UpgradeEventType.FAILED, UpgradeEventType.FINISHED
RUNS = an_upgrade()
ENDED = replace(RUNS, ended=NOON, why="9 nodes replaced")


def the_event(before, after):
    (event,) = events_of_upgrades(before, after, NOON)
    return event


def test_a_start_says_by_whom_and_what_the_nodes_become():
    event = the_event(None, RUNS)
    assert (event.type, event.resources, event.reason) == (
        STARTED,
        ("web",),
        f"it replaces the old nodes of the group: started by {PERSON}",
    )
    assert event.detail()["target"] == RUNS.target.template.label
    assert event.detail()["next"] == "leeward upgrade status web --cluster blue"


def test_a_start_by_the_policy_names_it_and_its_image():
    night = replace(RUNS, requested_by="", request=UpgradeRequest(automatic="ami-2"), prepared=False)
    event = the_event(None, night)
    assert event.reason.endswith("update.auto of its policy starts it for image ami-2")
    detail = event.detail()
    assert (detail["by"], detail["automatic"], detail["target"]) == (None, "ami-2", "ami-2")


@pytest.mark.parametrize(
    "last", [ENDED, replace(ENDED, error="PodEvictionFailure: web-1"), replace(RUNS, stopped=NOON)], ids=str
)
def test_each_start_after_an_end_is_notified_and_a_takeover_is_not(last):
    again = replace(RUNS, attempt=2, execution="web-2")
    assert turns(last, again) == [STARTED]
    assert turns(last, replace(again, began=NOON)) == [STARTED]
    assert turns(RUNS, again) == []


def test_progress_is_no_event():
    assert turns(RUNS, replace(RUNS, finished=3, started=4, why="waiting for nodes to leave", version=9)) == []
    assert turns(ENDED, replace(ENDED, suspended=False, version=9)) == []


def test_a_canary_that_waits_is_held_with_its_end_and_the_commands_against_it():
    event = the_event(RUNS, replace(RUNS, hold=CANARY))
    assert (event.type, event.reason) == (HELD, CANARY.why)
    assert event.detail()["hold"] == {"kind": "canary", "until": "2026-03-01T12:30:00Z"}
    assert event.next == (
        "it continues by itself at 2026-03-01T12:30:00Z; leeward upgrade abort web --cluster blue ends it, "
        "leeward upgrade rollback web --cluster blue takes it back"
    )


def test_a_pause_names_the_command_that_ends_it():
    paused = NotedHold(kind="paused", since=NOON, why="paused by the operator")
    by_operator = replace(RUNS, hold=paused, control=ControlRequest.PAUSE)
    assert the_event(RUNS, by_operator).next == "leeward upgrade resume web --cluster blue continues it"
    assert the_event(RUNS, replace(RUNS, hold=paused)).next.startswith("leeward resume --cluster blue")


def test_a_hold_is_notified_again_only_when_it_is_another_and_once_when_it_is_over():
    held = replace(RUNS, hold=CANARY)
    later = replace(held, hold=replace(CANARY, why="other words", since=NOON + timedelta(minutes=1)))
    alarm = replace(held, hold=replace(CANARY, kind="alarm", until=None))
    assert turns(held, later) == []
    assert turns(held, alarm) == [HELD]
    assert turns(alarm, RUNS) == [RESUMED]
    assert turns(held, replace(ENDED, hold=None)) == [FINISHED]


def test_a_rollback_is_notified_when_it_begins_and_when_it_has_ended():
    asked = replace(
        RUNS, control=ControlRequest.ROLLBACK, hold=CANARY, warnings=("rolled back: alarm 5xx is in ALARM",)
    )
    event = the_event(replace(RUNS, hold=CANARY), asked)
    assert (event.type, event.reason) == (UpgradeEventType.ROLLING_BACK, asked.warnings[0])
    turned = replace(asked, control=ControlRequest.RUN, rolling_back=True, hold=None)
    assert turns(asked, turned) == []
    assert turns(turned, replace(turned, ended=NOON)) == [UpgradeEventType.ROLLED_BACK]


def test_each_rollback_of_one_attempt_has_an_id_of_its_own():
    """An alarm rolls back, a person turns that round, and the alarm rings on: the third is no repetition."""
    ids = set()
    for version, turned in enumerate((False, True, False)):
        before = replace(RUNS, version=2 * version, rolling_back=turned)
        asked = replace(before, version=before.version + 1, control=ControlRequest.ROLLBACK)
        ids.add(the_event(before, asked).id)
        assert the_event(before, asked).id in ids
    assert len(ids) == 3


def test_a_rollback_of_an_upgrade_that_has_ended_is_one_start():
    asked = replace(ENDED, control=ControlRequest.ROLLBACK)
    assert turns(ENDED, asked) == []
    started = the_event(asked, replace(asked, ended=None, attempt=2))
    assert started.type is STARTED
    assert started.reason.startswith("it rolls the group back")


@pytest.mark.parametrize(
    ("end", "event", "outcome"),
    [
        ({"ended": NOON}, FINISHED, "upgraded"),
        ({"ended": NOON, "control": ControlRequest.ABORT}, FINISHED, "aborted"),
        ({"ended": NOON, "rolling_back": True}, UpgradeEventType.ROLLED_BACK, "rolled-back"),
        ({"ended": NOON, "error": "NodeCreationFailure: no capacity"}, FAILED, "failed"),
        ({"stopped": NOON, "why": "execution web-1 ended with ABORTED"}, FAILED, "stopped"),
    ],
)
def test_each_end_is_one_event_with_its_outcome(end, event, outcome):
    before = replace(RUNS, rolling_back=bool(end.get("rolling_back")))
    made = the_event(before, replace(RUNS, **end))
    assert (made.type, made.detail()["outcome"]) == (event, outcome)
    assert made.reason == end.get("error", end.get("why", RUNS.why))


def test_ids_are_the_same_when_a_change_is_read_again_and_different_otherwise():
    assert upgrade_events() == upgrade_events()
    elsewhere = replace(RUNS, cluster="green")
    ids = {event.id for event in upgrade_events().values()} | {the_event(None, elsewhere).id}
    second = replace(RUNS, attempt=2)
    ids |= {the_event(ENDED, second).id, the_event(second, replace(second, ended=NOON)).id}
    assert len(ids) == len(UpgradeEventType) + 3


def test_every_hold_has_words_for_what_is_next():
    for hold in set(Hold) - {Hold.TEMPLATE}:
        held = replace(RUNS, hold=NotedHold(kind=hold.value, since=NOON, why="x"))
        assert "leeward " in the_event(RUNS, held).next


def test_the_commands_can_be_run_as_they_stand_also_for_a_name_that_a_shell_would_read():
    event = the_event(None, an_upgrade(group="a b;$(x)"))
    assert event.next == "leeward upgrade status 'a b;$(x)' --cluster blue"
    for each in upgrade_events().values():
        commands = [part.partition("leeward ")[2] for part in each.next.replace(", ", "; ").split("; ")]
        for command in filter(None, commands):
            words = command.split()
            last = words.index("--cluster") + 2
            build_parser().parse_args(words[:last])


def test_a_detail_is_plain_json():
    for event in upgrade_events().values():
        assert json.loads(json.dumps(event.detail())) == event.detail()
