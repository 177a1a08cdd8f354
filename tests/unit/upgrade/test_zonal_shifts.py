"""Upgrades while a zonal shift is in effect: the other zones continue, nothing is launched or removed in that one."""

import pytest

from leeward.cluster.facets import Known
from leeward.upgrade.gate import gate_of, zones_to_serve
from leeward.upgrade.record import OpenLaunch
from leeward.upgrade.run import UpgradeNext
from leeward.upgrade.steps import STEPS
from leeward.upgrade.surge.launches import launches
from leeward.upgrade.waves.drain_selection import starts, waiting
from tests.fakes.builders import GROUP, ZONE, shifted
from tests.unit.upgrade.builders import a_node, an_upgrade
from tests.unit.upgrade.test_waits import NEW, OLD, RUN, a_rolling_group, draining
from tests.unit.upgrade.waves.test_early_starts import a_record

AWAY_FROM_A = Known(shifted("a"))


def in_two_zones(*new, **more):
    """One old node in each of the zones a and b, and new ones by (name, zone)."""
    nodes = [a_node("old-a", "a"), a_node("old-b", "b"), *(a_node(name, zone) for name, zone in new)]
    return an_upgrade(*nodes, new=[name for name, _ in new], **more)


def ids(members):
    return [one.instance.id for one in members]


def test_no_new_node_is_launched_in_the_shifted_zone():
    assert sorted(launches(in_two_zones(), a_record())) == ["a", "b"]
    assert launches(in_two_zones(shifts=AWAY_FROM_A), a_record()) == ("b",)


def test_the_gate_does_not_wait_for_the_shifted_zone():
    there = in_two_zones(("new-b", "b"))
    assert [one.object for one in gate_of(there).missing] == ["a"]
    there = in_two_zones(("new-b", "b"), shifts=AWAY_FROM_A)
    assert (zones_to_serve(there), gate_of(there).open) == ({"b"}, True)


def test_once_another_writer_has_scaled_the_group_no_zone_waits_for_a_launch_and_new_nodes_still_prove_the_target():
    assert gate_of(in_two_zones(("new-b", "b")), launches=False).open
    nodes = [a_node("old-a", "a"), a_node("new-b", "b", ready=False)]
    assert not gate_of(an_upgrade(*nodes, new=["new-b"]), launches=False).open


def test_a_new_node_of_the_shifted_zone_that_is_not_ready_holds_no_gate():
    nodes = [a_node("old-b", "b"), a_node("new-b", "b"), a_node("new-a", "a", ready=False)]
    assert not gate_of(an_upgrade(*nodes, new=["new-a", "new-b"])).open
    assert gate_of(an_upgrade(*nodes, new=["new-a", "new-b"], shifts=AWAY_FROM_A)).open


def test_no_wave_takes_a_node_of_the_shifted_zone():
    ahead = {"i-new-a": OpenLaunch(zone="a"), "i-new-b": OpenLaunch(zone="b")}
    new = (("new-a", "a"), ("new-b", "b"))
    record = a_record(ahead=ahead, launched=2)
    shift = in_two_zones(*new, shifts=AWAY_FROM_A)
    assert ids(waiting(shift, record)) == ["i-old-b"]
    assert [one.old for one in starts(shift, record)] == ["i-old-b"]


def test_a_new_node_of_the_shifted_zone_lets_no_node_of_another_zone_start():
    """It takes no pods: EKS has cordoned it."""
    record = a_record(ahead={"i-new-a": OpenLaunch(zone="a")}, launched=1)
    assert starts(in_two_zones(("new-a", "a"), shifts=AWAY_FROM_A), record) == ()


@pytest.mark.parametrize("minutes", [0, 60])
def test_an_upgrade_whose_other_nodes_are_done_waits_for_the_end_of_the_shift(minutes):
    system = a_rolling_group()
    draining(system, finished=1, ahead={NEW: OpenLaunch(zone=ZONE)}, launched=1)
    system.shift(ZONE)
    run = STEPS["drain"](RUN, {}, system.ports)
    system.clock.advance(minutes=minutes)
    run = STEPS["drain"](run, {}, system.ports)
    assert run.next is UpgradeNext.WINDOW
    assert f"wait for the end of the zonal shift away from {ZONE}" in run.why
    assert system.claims.records == {}
    system.shift()
    STEPS["drain"](run, {}, system.ports)
    assert set(system.claims.records) == {OLD}


def test_a_node_that_a_killed_step_has_recorded_is_taken_back_once_its_zone_is_shifted():
    system = a_rolling_group()
    draining(system, under_way={OLD: "t.1"}, started=1, ahead={NEW: OpenLaunch(zone=ZONE)}, launched=1)
    system.shift(ZONE)
    STEPS["drain"](RUN, {}, system.ports)
    assert system.claims.records == {}
    assert system.upgrades.records[GROUP].under_way == {}


def test_a_group_whose_launches_are_not_placed_by_us_is_held():
    system = a_rolling_group()
    draining(system, refusal="UnsupportedOperation: mixed purchase options")
    system.shift(ZONE)
    run = STEPS["drain"](RUN, {}, system.ports)
    assert run.next is UpgradeNext.WINDOW
    assert "the group would launch in that zone by itself" in run.why
    assert not system.group_changes.asked["raise_to"]
