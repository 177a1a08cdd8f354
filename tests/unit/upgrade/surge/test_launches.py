"""The zones of the new nodes that come ahead: each zone with old nodes gets its first one before any gets a second."""

from collections import Counter
from dataclasses import replace

import pytest

from leeward.upgrade.record import LaunchOrder, OpenLaunch
from leeward.upgrade.surge.launches import launches
from leeward.upgrade.surge.sizes import Strategy
from tests.unit.upgrade.builders import a_node, an_upgrade
from tests.unit.upgrade.waves.test_early_starts import a_record, an_ec2_instance


def a_group(*new, cordoned="", **old):
    """Old nodes by zone, `a_group(a=4, b=1)`, and new ones by (name, zone)."""
    nodes = [
        a_node(f"old-{zone}{number}", zone, cordoned=zone == cordoned)
        for zone, count in old.items()
        for number in range(count)
    ]
    return an_upgrade(*nodes, *(a_node(name, zone) for name, zone in new), new=[name for name, _ in new])


def before_the_gate(**fields):
    return a_record(**{"surge": 3, "cordoned": False, **fields})


def ahead(**zones):
    return {f"i-{name}": OpenLaunch(zone=zone) for name, zone in zones.items()}


def test_the_surge_reaches_every_zone_however_many_old_nodes_one_of_them_has():
    """Else the gate would wait for a zone in which nothing is launched, and the upgrade would fail."""
    found = launches(a_group(a=10, b=1, c=1), before_the_gate(surge=6))
    assert Counter(found) == {"a": 4, "b": 1, "c": 1}


@pytest.mark.parametrize("old", [{"a": 2, "b": 2, "c": 1}, {"a": 9, "b": 1, "c": 1}])
def test_incremental_begins_with_one_for_each_zone(old):
    assert sorted(launches(a_group(**old), before_the_gate(strategy=Strategy.INCREMENTAL))) == ["a", "b", "c"]


def test_incremental_then_launches_in_the_zone_that_has_none():
    """The launch in the zone with fewest old nodes was refused."""
    record = before_the_gate(strategy=Strategy.INCREMENTAL, ahead=ahead(n1="a", n2="b"), launched=2)
    assert launches(a_group(("n1", "a"), ("n2", "b"), a=5, b=5, c=1), record) == ("c",)


def test_a_new_node_of_an_earlier_start_serves_its_zone():
    found = launches(a_group(("n1", "c"), a=3, b=3, c=3), before_the_gate(surge=2))
    assert sorted(found) == ["a", "b"]


def test_a_zone_with_an_open_order_is_not_taken_for_one_without():
    record = before_the_gate(orders={"1": LaunchOrder(zone="c", subnet="subnet-c", count=1)})
    assert sorted(launches(a_group(a=1, b=1, c=5), record)) == ["a", "b"]


def test_a_zone_gets_its_first_node_although_every_old_node_has_one_ahead():
    """It was closed while the others launched, and one of their old nodes has ended: the gate waits for the zone."""
    there = {"n1": "a", "n2": "a", "n3": "b", "n4": "b"}
    group = a_group(*there.items(), a=2, b=1, c=1)
    assert launches(group, before_the_gate(surge=6, ahead=ahead(**there), launched=4)) == ("c",)
    assert launches(group, before_the_gate(surge=4, ahead=ahead(**there), launched=4)) == ()
    assert launches(group, before_the_gate(surge=6, ahead=ahead(**there), launched=4, cordoned=True)) == ()


@pytest.mark.parametrize("strategy", [Strategy.DEFAULT, Strategy.INCREMENTAL])
def test_a_launch_that_a_rollback_has_made_old_serves_no_zone(strategy):
    """The rollback of two nodes finds the first target's launch in the zone c, where it is old now."""
    there = {"n1": "a", "n2": "b", "n3": "d", "old-c0": "c"}
    group = a_group(("n1", "a"), ("n2", "b"), ("n3", "d"), c=2)
    record = before_the_gate(surge=4, strategy=strategy, ahead=ahead(**there), launched=4)
    assert launches(group, record) == ("c",)
    again = replace(record, cordoned=True, strategy=Strategy.DEFAULT)  # by the first start: the gate waits once more
    assert (launches(group, again), launches(group, again, gating=True)) == ((), ("c",))


def test_a_zone_that_others_have_cordoned_gets_its_first_node_after_the_open_ones():
    assert launches(a_group(cordoned="a", a=5, b=2, c=2), before_the_gate(surge=2)) == ("b", "c")
    assert launches(a_group(cordoned="a", a=5, b=5, c=5), before_the_gate(surge=4)) == ("b", "c", "a", "b")


@pytest.mark.parametrize(("state", "launched"), [("running", 1), ("shutting-down", 2), (None, 2)])
def test_an_instance_that_still_runs_takes_a_place_of_max_surge_though_its_launch_is_offset(state, launched):
    group = a_group(("n1", "a"), a=4)
    known = {} if state is None else {"i-gone": replace(an_ec2_instance("gone"), state=state)}
    group = replace(group, max_surge=3, snapshot=replace(group.snapshot, instances=known))
    record = before_the_gate(cordoned=True, surge=3, ahead=ahead(n1="a"), launched=2, under_way={"i-gone": "tag"})
    assert len(launches(group, record)) == launched
    drained = replace(record, ahead={"i-n1": OpenLaunch(zone="a", offset_by="i-gone")})
    assert len(launches(group, drained)) == 2, "counted once while it has a launch to offset"


@pytest.mark.parametrize(("terminate", "launched"), [("first", 0), ("last", 1)])
def test_without_max_surge_only_nodes_that_drain_after_their_request_take_a_place(terminate, launched):
    """Three launches have their old nodes, of the four that come ahead at the most."""
    there = {"n1": "a", "n2": "a", "n3": "a"}
    group = a_group(*there.items(), a=9)
    update = replace(group.update, terminate=terminate)
    known = {"i-gone": an_ec2_instance("gone")}
    group = replace(group, update=update, parallel=1, snapshot=replace(group.snapshot, instances=known))
    taken = {f"i-{new}": OpenLaunch(zone="a", offset_by=f"i-old-a{number}") for number, new in enumerate(there)}
    under_way = dict.fromkeys([*(node.offset_by for node in taken.values()), "i-gone"], "tag")
    record = before_the_gate(cordoned=True, surge=1, ahead=taken, launched=4, under_way=under_way)
    assert len(launches(group, record, rolling=True)) == launched
