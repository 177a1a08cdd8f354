"""The reconciler and pauses that time changes."""

from dataclasses import replace
from datetime import timedelta

from leeward.errors import ThrottledError
from leeward.model.pause import PauseRecord
from leeward.reconcile.reconciler import reconcile_once
from tests.fakes.builders import CLUSTER, a_group, a_pause
from tests.fakes.system import FakeSystem


def a_system(**pause):
    """One cluster with one pause, which its functions know."""
    system = FakeSystem(groups=[a_group("web-a")])
    system.pauses.write(PauseRecord(cluster=CLUSTER).paused(a_pause(**pause)))
    now = system.clock.now()
    policies = system.clusters.policies_of[CLUSTER]
    system.clusters.policies_of[CLUSTER] = replace(policies, pauses=system.pauses.read(CLUSTER).in_force(now))
    return system


def pauses(system):
    return system.pauses.records[CLUSTER].pauses


def test_a_pause_without_an_end_is_announced_again_after_a_day():
    system = FakeSystem()
    now = system.clock.now()
    system = a_system(announced=now - timedelta(days=1))
    assert reconcile_once(system.ports).errors == []
    assert pauses(system) == (a_pause(announced=now),)


def test_a_pause_that_has_ended_is_removed():
    system = a_system(until=FakeSystem().clock.now())
    reconcile_once(system.ports)
    assert pauses(system) == ()


def test_the_switch_is_not_even_read_while_nothing_is_due():
    system = a_system(announced=FakeSystem().clock.now())
    read = system.pauses.asked["read"]
    reconcile_once(system.ports)
    assert (system.pauses.asked["read"], system.pauses.asked["write"]) == (read, 1)


def test_what_another_writer_has_changed_in_between_stays():
    system = a_system(until=FakeSystem().clock.now())
    later = a_pause(why="another")
    system.pauses.write(system.pauses.read(CLUSTER).paused(later))
    reconcile_once(system.ports)
    assert [pause.why for pause in pauses(system)] == ["another"]


def test_a_switch_that_cannot_be_read_stops_no_other_pass():
    system = a_system(until=FakeSystem().clock.now())
    system.pauses.fail("read", ThrottledError("rate exceeded"))
    assert reconcile_once(system.ports).errors == [f"{CLUSTER}: pauses: ThrottledError: rate exceeded"]
