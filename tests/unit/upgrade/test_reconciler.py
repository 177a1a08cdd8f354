"""What EventBridge's word on a dead execution of node-group-upgrade leads to."""

import json
from dataclasses import replace

import pytest

from leeward.notifications.workflow_events import UpgradeEventType, events_of_upgrades
from leeward.upgrade.reconciler import handle_failed_execution, reconcile_upgrades
from tests.fakes.builders import GROUP, a_group, an_instance
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import begun

NAME = f"{GROUP}-1"


@pytest.fixture
def system():
    group = replace(a_group(GROUP, "i-0abc"), suspended=("AZRebalance",))
    found = FakeSystem(instances=[an_instance()], groups=[group])
    begun(found, execution=NAME, attempt=1, suspended=True)
    return found


def handled(system, name=NAME, given=None):
    document = json.dumps({"group": GROUP}) if given is None else given
    return handle_failed_execution({"name": name, "status": "TIMED_OUT", "input": document}, system.ports)


def suspended(system):
    return system.groups.by_name[GROUP].suspended


def test_what_it_had_suspended_is_resumed_and_the_record_says_why(system):
    assert (
        handled(system)
        == f"execution {NAME} ended with TIMED_OUT: start the upgrade of {GROUP} again, and it continues"
    )
    record = system.upgrades.records[GROUP]
    assert (suspended(system), record.suspended, record.resumable) == ((), False, True)
    assert record.why.startswith(f"execution {NAME} ended with TIMED_OUT")


def test_an_upgrade_whose_execution_was_stopped_is_over_until_its_next_start(system):
    before = system.upgrades.records[GROUP]
    handled(system)
    record = system.upgrades.records[GROUP]
    assert (before.runs, record.runs, record.ended) == (True, False, None)
    (event,) = events_of_upgrades(before, record, record.stopped)
    assert (event.type, event.detail()["outcome"]) == (UpgradeEventType.FAILED, "stopped")
    handled(system)
    assert events_of_upgrades(record, system.upgrades.records[GROUP], record.stopped) == ()


def test_an_upgrade_of_a_group_that_was_deleted_is_over_too(system):
    del system.groups.by_name[GROUP]
    handled(system)
    assert not system.upgrades.records[GROUP].runs


def test_an_execution_that_does_not_hold_the_group_has_left_nothing(system):
    assert handled(system, name=f"{GROUP}-2").endswith("and left nothing")
    assert suspended(system) == ("AZRebalance",)


def test_one_that_runs_after_all_is_left_alone(system):
    system.upgrade_executions.open.add(NAME)
    assert handled(system).endswith("and left nothing")
    assert suspended(system) == ("AZRebalance",)


@pytest.mark.parametrize("given", ["", "no JSON", "[]", "{}", '{"group": 7}'])
def test_an_event_without_a_group_is_left_to_the_reconciler(system, given):
    assert handled(system, given=given).endswith("and left nothing")
    assert suspended(system) == ("AZRebalance",)


def reconciled(system, times=1):
    """The minute reconciler, once a minute."""
    for _ in range(times):
        reconcile_upgrades(system.groups.by_name.values(), system.ports)
        system.clock.advance(minutes=1)
    return system.upgrades.records[GROUP]


def test_a_stop_whose_event_was_lost_is_notified_at_the_second_observation_and_once(system):
    before = reconciled(system)
    assert (before.runs, before.suspended) == (True, False)
    record = reconciled(system)
    (event,) = events_of_upgrades(before, record, system.clock.now())
    assert (event.type, event.detail()["outcome"]) == (UpgradeEventType.FAILED, "stopped")
    assert record.why == f"execution {NAME} does not run any more: start the upgrade of {GROUP} again, and it continues"
    assert reconciled(system, times=3) == record
    assert handled(system).startswith(f"execution {NAME} ended with TIMED_OUT")
    assert events_of_upgrades(record, system.upgrades.records[GROUP], system.clock.now()) == ()


def test_an_upgrade_that_another_execution_takes_over_between_two_observations_runs(system):
    reconciled(system)
    system.upgrades.records[GROUP] = replace(system.upgrades.records[GROUP], execution=f"{GROUP}-2")
    assert reconciled(system).runs
    system.upgrade_executions.open.add(f"{GROUP}-2")
    assert reconciled(system, times=3).runs
