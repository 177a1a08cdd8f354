"""A failed upgrade gives the old nodes back, and names what it leaves and what that costs."""

from dataclasses import replace

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.model import well_known
from leeward.model.capacity import RaisedMaximum
from leeward.model.facts import FactKind, Sheet
from leeward.reconcile.reconciler import reconcile_once
from leeward.upgrade.reconciler import reconcile_upgrades
from leeward.upgrade.record import OpenLaunch
from leeward.upgrade.run import UpgradeNext
from tests.fakes.builders import CLUSTER, GROUP
from tests.unit.upgrade.test_completion import record, rolling, step
from tests.unit.upgrade.test_waits import NEW, OLD, RUN

FAILED = replace(RUN, next=UpgradeNext.EVICTION_FAILURE, why="pods")


def failing(**given):
    system = rolling(ahead={NEW: OpenLaunch(zone="us-east-1a")}, **given)
    node = system.kubernetes.by_name[f"node-{OLD}"]
    system.kubernetes.uncordon(node)
    system.kubernetes.cordon(system.kubernetes.by_name[f"node-{OLD}"], GROUP, exclude=True)
    new = system.instances.known[NEW]
    prices = {"on-demand": {new.type: 0.096}, "spot": {new.type: {new.zone: 0.096}}}
    system.catalog.keep(CLUSTER, FactKind.PRICES, Sheet(content=prices, synced=system.clock.now()))
    return system


def serves(system):
    node = system.kubernetes.by_name[f"node-{OLD}"]
    return not node.unschedulable and well_known.EXCLUDE_LABEL not in node.labels


def failures(system):
    return [event.message for event in system.kubernetes.events if event.reason == "UpgradeFailed"]


def test_a_failed_upgrade_returns_its_old_nodes_to_service_and_to_load_balancers():
    system = failing()
    assert not serves(system)
    step(system, "note-failure", FAILED)
    assert serves(system)


def test_an_upgrade_of_a_deleted_group_ends_and_keeps_nothing_for_the_next_group_of_its_name():
    """The notification of its end follows from the record."""
    system = failing(suspended=True)
    system.maxima.write(RaisedMaximum(group=GROUP, before=10, raised=(14,)))
    del system.groups.by_name[GROUP]
    step(system, "note-failure", replace(RUN, next=UpgradeNext.FAILED))
    ended = record(system)
    assert (ended.ended, ended.suspended) == (system.clock.now(), False)
    assert not system.maxima.read(GROUP).active


def test_the_failure_names_the_new_nodes_that_stay_and_their_cost():
    system = failing()
    done = step(system, "note-failure", FAILED)
    left = f"pods; new nodes beyond the group's size: 1 ({NEW}, some $0.10 an hour): start continues with them"
    assert left in done.why
    assert left in record(system).error
    assert [left in message for message in failures(system)] == [True]


def test_a_cost_that_is_not_known_is_left_out():
    system = failing()
    system.catalog.keep(CLUSTER, FactKind.PRICES, Sheet(content={}, synced=system.clock.now()))
    assert f"size: 1 ({NEW}): start" in step(system, "note-failure", FAILED).why


def test_an_upgrade_that_leaves_nothing_says_nothing_of_it():
    assert step(rolling(), "note-failure", FAILED).why == "pods"


def test_where_the_cluster_does_not_answer_the_failure_is_recorded_and_the_reconciler_gives_the_nodes_back(monkeypatch):
    system = failing()

    def unreachable():
        raise ClusterUnreachableError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(system.kubernetes, "nodes", unreachable)
        step(system, "note-failure", FAILED)
    assert record(system).error
    assert not serves(system)
    system.upgrade_executions.open.clear()
    reconcile_once(system.ports)
    assert serves(system)


def test_nodes_of_a_running_upgrade_stay_cordoned():
    system = failing()
    reconcile_once(system.ports)
    assert not serves(system)


@pytest.mark.parametrize(("stays", "events"), [(True, 3), (False, 1)])
def test_what_a_failed_upgrade_leaves_is_reported_once_a_day_while_it_is_there(stays, events):
    system = failing()
    step(system, "note-failure", FAILED)
    system.upgrade_executions.open.clear()
    if not stays:
        del system.instances.known[NEW]
    for _ in range(2 * 24 * 30 + 2):  # two days, every other minute
        system.clock.advance(seconds=120)
        reconcile_upgrades(system.groups.by_name.values(), system.ports)
    assert len(failures(system)) == events
