"""Alarms that guard an upgrade: what holds, what is taken back, and what pre-flight and the status say of them."""

from dataclasses import replace

import pytest

from leeward.errors import AccessDeniedError
from leeward.model.alarm import Alarm, reading_of
from leeward.policy.document import OnAlarm
from leeward.upgrade.control import Hold, Move, Permission
from leeward.upgrade.preflight.findings import Code, Severity
from leeward.upgrade.preflight.group_checks import check_alarms
from leeward.upgrade.record import ControlRequest, OpenLaunch
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.status import UpgradePhase, status_of
from leeward.upgrade.steps import STEPS
from leeward.workflow.alarms import read_alarms
from tests.fakes.builders import GROUP, ZONE
from tests.fakes.upgrades import FakeAlarms
from tests.unit.upgrade.builders import NOON, a_node, an_upgrade
from tests.unit.upgrade.test_control import RECORD
from tests.unit.upgrade.test_waits import NEW, OLD, RUN, a_rolling_group, draining

NAMES = ("web-5xx", "burn-rate")
AHEAD = {NEW: OpenLaunch(zone=ZONE)}


def a_guarded_group(**update):
    system = a_rolling_group(alarms=NAMES, **update)
    system.kubernetes.budget_list.clear()
    for name in NAMES:
        system.alarms.quiet(name)
    return system


def step(system, name="drain"):
    return STEPS[name](RUN, {"step": name}, system.ports)


def test_an_alarm_that_rings_starts_no_node_and_says_since_when():
    system = a_guarded_group()
    draining(system)
    system.alarms.ring("web-5xx", NOON.timestamp())
    run = step(system)
    assert (run.next, run.pause) == (UpgradeNext.ALARM, 30)
    assert run.why == "alarm web-5xx is in ALARM since 2024-05-06T12:00:00Z"
    assert not system.claims.records
    assert [event.reason for event in system.kubernetes.events] == ["UpgradeHeld"]


def test_a_node_that_a_killed_step_recorded_stays_in_service_while_an_alarm_rings():
    system = a_guarded_group()
    draining(system, under_way={OLD: "t.1"}, started=1)
    system.alarms.ring("web-5xx")
    step(system)
    record = system.upgrades.records[GROUP]
    assert (dict(record.under_way), record.taken_back, system.claims.records) == ({}, 1, {})


def test_an_alarm_that_begins_to_ring_while_the_turn_launches_holds_the_terminations():
    """LaunchInstances may hang for minutes between the reading at the start of the turn and the requests."""
    system = a_guarded_group()
    draining(system, launched=1, ahead=AHEAD)
    write = system.upgrades.write

    def slow(record):
        written = write(record)
        system.clock.advance(seconds=60)
        system.alarms.ring("web-5xx")
        return written

    system.upgrades.write = slow
    step(system)
    record = system.upgrades.records[GROUP]
    assert (dict(record.under_way), record.taken_back, system.claims.records) == ({}, 1, {})
    assert step(system).next is UpgradeNext.ALARM


def test_it_continues_five_minutes_after_the_alarm_was_last_seen():
    system = a_guarded_group()
    draining(system, launched=1, ahead=AHEAD)
    system.alarms.ring("web-5xx")
    step(system)
    system.alarms.quiet("web-5xx")
    system.clock.advance(seconds=290)
    run = step(system)
    assert (run.next, run.pause) == (UpgradeNext.ALARM, 10)
    system.clock.advance(seconds=10)
    assert step(system).next is UpgradeNext.WAIT
    assert system.claims.records
    assert [event.reason for event in system.kubernetes.events] == ["UpgradeHeld", "UpgradeResumed"]


def test_alarms_that_cannot_be_read_hold_until_they_can():
    system = a_guarded_group(on_alarm=OnAlarm.ROLLBACK)
    draining(system)
    system.alarms.fail("describe", AccessDeniedError("cloudwatch:DescribeAlarms on web-5xx: AccessDenied"), times=1)
    run = step(system)
    assert run.next is UpgradeNext.ALARM
    assert "cannot be read (AccessDeniedError: cloudwatch:DescribeAlarms" in run.why
    assert step(system).next is UpgradeNext.WAIT


def test_an_alarm_that_was_deleted_holds():
    system = a_rolling_group(alarms=("gone",))
    draining(system)
    assert step(system).why == "alarm gone does not exist: create it, or take it out of the policy"


def test_an_alarm_asks_for_a_rollback_as_an_operator_does():
    system = a_guarded_group(on_alarm=OnAlarm.ROLLBACK)
    draining(system, under_way={OLD: "t.1"}, started=1, previous=RECORD.previous)
    system.alarms.ring("web-5xx")
    assert step(system).next is UpgradeNext.ROLLBACK
    record = system.upgrades.records[GROUP]
    assert record.control is ControlRequest.ROLLBACK
    assert record.warnings[0].startswith("rolled back: alarm web-5xx is in ALARM")


def test_a_rollback_reads_no_alarm():
    system = a_guarded_group(on_alarm=OnAlarm.ROLLBACK)
    draining(system, rolling_back=True)
    system.alarms.ring("web-5xx")
    assert step(system).next is UpgradeNext.WAIT
    assert not system.alarms.asked["describe"]


def test_a_group_without_alarms_asks_cloudwatch_nothing():
    system = a_rolling_group()
    draining(system)
    step(system)
    assert not system.alarms.asked["describe"]


def test_the_status_says_which_alarm_holds_it_from_the_record_alone():
    why = "alarm web-5xx is in ALARM since 2024-05-06T12:00:00Z"
    held = Permission(move=Move.HOLD, hold=Hold.ALARM, why=why)
    status = status_of(an_upgrade(a_node("o1")), RECORD, held)
    assert (status.phase, status.held) == (UpgradePhase.HELD, why)


@pytest.mark.parametrize(
    ("known", "finding"),
    [
        ({"web-5xx": Alarm(name="web-5xx", ringing=False)}, None),
        ({}, (Code.ALARM_MISSING, Severity.BLOCKER)),
        ({"web-5xx": Alarm(name="web-5xx", ringing=True, since=NOON)}, (Code.ALARM_RINGING, Severity.WARNING)),
    ],
    ids=["quiet", "missing", "ringing"],
)
def test_pre_flight_blocks_an_alarm_that_does_not_exist_and_warns_of_one_that_rings(known, finding):
    preflight = an_upgrade(a_node("o1"))
    inputs = replace(preflight.inputs, alarms=reading_of(["web-5xx"], known))
    found = [(one.code, one.severity) for one in check_alarms(replace(preflight, inputs=inputs))]
    assert found == ([finding] if finding else [])


def test_a_reading_names_every_alarm_once():
    alarms = FakeAlarms()
    alarms.ring("b", NOON.timestamp())
    reading = read_alarms(["a", "b", "b"], alarms)
    rings, missing = reading.holds.split("; ")
    assert rings == "alarm b is in ALARM since 2024-05-06T12:00:00Z"
    assert missing == "alarm a does not exist: create it, or take it out of the policy"
    assert read_alarms([], alarms).holds == ""
