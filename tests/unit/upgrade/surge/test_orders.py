"""New nodes are ordered subnet by subnet, one call for all of one subnet, and whatever dies is asked for again."""

from dataclasses import replace

import pytest

from leeward.policy.document import ClusterSettings
from leeward.upgrade.gate import gate_of
from leeward.upgrade.observation import Observation
from leeward.upgrade.record import LaunchOrder, OpenLaunch
from leeward.upgrade.surge import orders
from leeward.upgrade.surge.orders import adopted, launch_ordered, raise_desired_size
from tests.fakes.builders import GROUP, a_group
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import a_node, a_policy, an_upgrade, begun
from tests.unit.upgrade.waves.test_early_starts import TWO


@pytest.fixture
def system():
    return FakeSystem(groups=[a_group(GROUP)])


def an_order(letter, count):
    return LaunchOrder(zone=f"us-east-1{letter}", subnet=f"subnet-{letter}", count=count)


def zones(record):
    return [surge.zone for surge in record.ahead.values()]


def ordered(system, *orders):
    return begun(system, orders={str(number): order for number, order in enumerate(orders, 1)})


def test_all_that_are_ordered_in_a_subnet_come_with_one_call(system):
    done = launch_ordered(ordered(system, an_order("a", 3)), system.ports)
    assert [subnet for _, subnet, _ in system.groups.launches] == ["subnet-a"]
    assert (zones(done), done.launched) == (["us-east-1a"] * 3, 3)
    assert (dict(done.orders), system.upgrades.read(GROUP)) == ({}, done)


def test_an_order_whose_answer_got_lost_brings_the_same_nodes(system):
    record = ordered(system, an_order("a", 3))
    system.upgrades.fail("write", RuntimeError("killed"), times=1)
    with pytest.raises(RuntimeError):
        launch_ordered(record, system.ports)
    done = launch_ordered(system.upgrades.read(GROUP), system.ports)
    assert (len(system.groups.launches), len(done.ahead)) == (1, 3)
    assert system.groups.by_name[GROUP].desired == a_group(GROUP).desired + 3


def test_a_subnet_without_capacity_is_remembered_and_the_others_are_asked(system):
    system.groups.short_of_capacity.add("subnet-a")
    done = launch_ordered(ordered(system, an_order("a", 2), an_order("b", 1)), system.ports)
    assert list(done.short) == ["subnet-a"]
    assert zones(done) == ["us-east-1b"]


def test_a_zone_without_addresses_is_remembered_until_a_node_has_a_place_there(system, monkeypatch):
    preflight = an_upgrade(a_node("o1"), policy=a_policy(TWO))
    observation = Observation(preflight=preflight, instances={}, settings=ClusterSettings(name="blue"))

    def after(record, *places):
        monkeypatch.setattr(orders, "places_for", lambda *_, **__: list(places))
        record = orders.order(record, observation, ("us-east-1a", "us-east-1b"), system.network, system.catalog)
        return launch_ordered(record, system.ports)

    full = after(begun(system), ("us-east-1b", "subnet-b"))
    assert dict(full.short) == {"us-east-1a": f"us-east-1a: {orders.FULL}"}
    assert after(full, ("us-east-1a", "subnet-a"), ("us-east-1b", "subnet-b")).short == {}


def test_the_maximum_size_is_raised_for_all_that_are_ordered(system):
    system.groups.by_name[GROUP] = replace(a_group(GROUP), desired=1, maximum=2)
    done = launch_ordered(ordered(system, an_order("a", 3), an_order("b", 2)), system.ports)
    assert (system.groups.by_name[GROUP].maximum, system.maxima.read(GROUP).before, len(done.ahead)) == (6, 2, 5)


def raises_until_each_zone_has_a_new_node(
    system, *, left=(), most=10, group_zones="abcdef", gating=True, cordoned=False, wanted=0
):
    """Raise the desired size of a group with an old node in each of the zones a and b. It launches where it has the
    fewest instances. `left`: zones of nodes of an earlier target. Return the zones of the new nodes.
    """
    old, there = {"o1": "a", "o2": "b"}, {f"left{n}": zone for n, zone in enumerate(left)}
    ahead = {f"i-{name}": OpenLaunch(zone=zone) for name, zone in there.items()}
    before = len(old) + len(there)
    wanted = before if left else wanted
    record = begun(system, refusal="ValidationError", surge=4, desired=2, ahead=ahead, wanted=wanted, cordoned=cordoned)
    new = dict[str, str]()
    for _ in range(most):
        nodes = [a_node(name, zone) for name, zone in {**old, **there, **new}.items()]
        shown = an_upgrade(*nodes, new=tuple(new), policy=a_policy(TWO))
        group = replace(shown.group, zones=tuple(group_zones))
        system.groups.by_name[GROUP] = replace(a_group(GROUP), desired=len(nodes), maximum=20)
        record = raise_desired_size(
            record,
            Observation(preflight=replace(shown, group=group), instances={}, settings=ClusterSettings(name="blue")),
            system.ports,
            gating=gating,
        )
        if not record.raised:
            break
        for _ in range(record.raised):
            held = [*old.values(), *there.values(), *new.values()]
            new[f"n{len(new)}"] = min(group_zones, key=lambda zone: (held.count(zone), zone in "ab", zone))
        ahead = {f"i-{name}": OpenLaunch(zone=zone) for name, zone in {**there, **new}.items()}
        record = replace(record, raised=0, ahead=ahead)
    return list(new.values())


@pytest.mark.parametrize(("left", "came"), [("", 10), ("cdef", 6), ("cc", 9), ("cdef" * 3, 8)])
def test_the_desired_size_is_raised_until_the_group_has_launched_in_each_zone_with_old_nodes(system, left, came):
    """Six zones of which two hold old nodes, also in a start that continues and has another target."""
    new = raises_until_each_zone_has_a_new_node(system, left=left)
    assert {"a", "b", *left} <= set(new)
    assert len(new) == came


@pytest.mark.parametrize(("gating", "served"), [(True, {"a", "b"}), (False, set())])
def test_a_start_that_continues_after_the_cordon_raises_again_where_the_first_surge_has_ended(system, gating, served):
    """As after a failed end whose surge nodes an autoscaler has removed; not while nodes drain."""
    new = raises_until_each_zone_has_a_new_node(system, gating=gating, cordoned=True, wanted=6)
    assert set(new) & {"a", "b"} == served


def test_a_group_that_never_launches_in_a_zone_is_not_raised_without_an_end(system):
    assert len(raises_until_each_zone_has_a_new_node(system, group_zones="c", most=20)) == 4


@pytest.mark.parametrize(("desired", "came"), [(3, ()), (4, ("i-n2",)), (5, ("i-n2",))])
def test_a_raise_that_failed_brings_no_surge_node_where_the_group_replaces_another(system, desired, came):
    """n1 has ended, n2 came in its place; the size is 3 with the surge node, 4 once it was raised."""
    record = begun(system, refusal="ValidationError", desired=2, raised=1, ahead={"i-n1": OpenLaunch(zone="a")})
    nodes = [a_node(name, zone) for name, zone in {"o1": "a", "o2": "b", "n2": "a"}.items()]
    shown = an_upgrade(*nodes, new=("n2",), policy=a_policy(TWO))
    shown = replace(shown, group=replace(shown.group, desired=desired))
    after = adopted(record, Observation(preflight=shown, instances={}, settings=ClusterSettings(name="blue")))
    assert (tuple(after.ahead), after.raised) == (("i-n1", *came), 1 - len(came))


def zones_left(system, *, counts, served="", **record):
    """Zones in reach of a raised desired size: a group of the zones a, b and c with so many old nodes in each."""
    old = {f"o{zone}{number}": zone for zone, count in counts.items() for number in range(count)}
    new = {f"n{number}": zone for number, zone in enumerate(served)}
    preflight = an_upgrade(
        *(a_node(name, zone) for name, zone in {**old, **new}.items()),
        new=tuple(new),
        policy=a_policy(TWO),
        group={"zones": ("a", "b", "c")},
    )
    ahead = {f"i-{name}": OpenLaunch(zone=zone) for name, zone in new.items()}
    given = {"refusal": "AccessDenied", "surge": 6, "desired": len(old), "wanted": len(old) + 6, **record}
    most = given.pop("max_surge", preflight.max_surge)
    return set(orders.zones_in_reach(replace(preflight, max_surge=most), begun(system, ahead=ahead, **given)))


@pytest.mark.parametrize(
    ("counts", "served", "more", "left"),
    [
        ({"a": 2, "b": 2, "c": 2}, "", {}, "abc"),  # none has come
        ({"a": 2, "b": 2, "c": 2}, "ab", {"raised": 4}, "c"),  # the others are to come
        ({"a": 2, "b": 2, "c": 2}, "abab", {}, "c"),  # the next raise may reach it
        ({"a": 2, "b": 2, "c": 2}, "ababab", {}, "c"),  # it is the next that the group takes: it lacked capacity
        ({"a": 1, "b": 1, "c": 5}, "ababab", {}, ""),  # it holds more than the others
        ({"a": 2, "b": 2, "c": 2}, "ab", {"max_surge": 2}, ""),  # no other may be launched
        ({"a": 1, "b": 1, "c": 5}, "ababab", {"wanted": 0}, "c"),  # launches are placed by name
    ],
)
def test_a_zone_that_no_further_raise_reaches_is_not_waited_for(system, counts, served, more, left):
    assert zones_left(system, counts=counts, served=served, **more) == set(left)


@pytest.mark.parametrize(
    ("ahead", "most", "reached"),
    [
        ({"i-old-a": "a", "i-old-b": "b"}, 2, ""),  # they wait for old nodes, which drain behind the gate
        ({"i-old-a": "a", "i-old-b": "b"}, 3, "abc"),
        ({"i-old-a": "a", "i-comes": "c"}, 2, "c"),  # it is launched, and no member yet
    ],
)
def test_launches_that_another_target_has_made_old_use_up_the_surge(system, ahead, most, reached):
    shown = an_upgrade(a_node("old-a", "a"), a_node("old-b", "b"), a_node("old-c", "c"), policy=a_policy(TWO))
    launched = {name: OpenLaunch(zone=zone) for name, zone in ahead.items()}
    record = begun(system, surge=most, ahead=launched)
    assert orders.zones_in_reach(replace(shown, max_surge=most), record) == set(reached)


def test_the_gate_does_not_wait_for_a_zone_out_of_reach_and_still_for_each_new_node():
    nodes = [a_node("old-a", "a"), a_node("old-c", "c"), a_node("new-a", "a")]
    there = an_upgrade(*nodes, new=["new-a"])
    assert (gate_of(there).open, gate_of(there, reach={"c"}).open, gate_of(there, reach=()).open) == (
        False,
        False,
        True,
    )
    booting = an_upgrade(*nodes[:2], a_node("new-a", "a", ready=False), new=["new-a"])
    assert not gate_of(booting, reach=()).open


@pytest.mark.parametrize(("gating", "raised"), [(True, 1), (False, 0)])
def test_a_start_that_continues_after_the_cordons_raises_for_a_zone_while_its_gate_waits(system, gating, raised):
    shown = an_upgrade(a_node("o1", "a"), a_node("o2", "b"), a_node("n1", "a"), new=("n1",), policy=a_policy(TWO))
    record = begun(
        system, refusal="AccessDenied", surge=4, wanted=6, cordoned=True, ahead={"i-n1": OpenLaunch(zone="a")}
    )
    observation = Observation(preflight=shown, instances={}, settings=ClusterSettings(name="blue"))
    assert raise_desired_size(record, observation, system.ports, gating=gating).raised == raised
