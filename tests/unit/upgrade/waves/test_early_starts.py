"""Launching ahead while old nodes leave, and old nodes that go before the nodes that replace them are Ready."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.model.instance import CapacityType, Instance
from leeward.policy.document import Budget, DisruptionPolicy, UpdatePolicy
from leeward.upgrade.gate import gate_of
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import LaunchOrder, OpenLaunch, UpgradeRecord
from leeward.upgrade.surge.launches import launches
from leeward.upgrade.surge.sizes import Strategy, most_ahead
from leeward.upgrade.waves import drain_selection
from leeward.upgrade.waves.drain_selection import PodCapacity, starts
from tests.unit.upgrade.builders import NEW, NOON, a_node, a_pod, a_policy, an_instance, an_upgrade, template
from tests.unit.upgrade.waves.test_pod_capacity import a_room, a_spec, some_pods

TWO = UpdatePolicy(max_unavailable=2)


def a_record(**fields):
    given = {
        "group": "web",
        "target": UpgradeTarget(template=template(NEW)),
        "strategy": Strategy.DEFAULT,
        "desired": 4,
        "maximum": 20,
        "began": NOON - timedelta(hours=1),
        "surge": 2,
        "cordoned": True,
    }
    return UpgradeRecord(**(given | fields))


def an_ec2_instance(name, *, seconds=60):
    return Instance(
        id=f"i-{name}",
        state="running",
        type="m5.large",
        zone="a",
        subnet="subnet-a",
        capacity_type=CapacityType.ON_DEMAND,
        tags={},
        launched=NOON - timedelta(seconds=seconds),
    )


def rolling(*, old=4, new=("n1",), booting=("n2",), seconds=60, update=TWO, **fields):
    """Old nodes with one pod each, new ones that are Ready, and new instances whose nodes have not joined."""
    nodes = [a_node(f"o{number}", cordoned=True) for number in range(1, old + 1)]
    serving = [a_node(name) for name in new]
    instances = {f"i-{name}": an_ec2_instance(name, seconds=seconds) for name in booting}
    on_their_way = tuple(an_instance(name, "a", NEW, "Pending") for name in booting)
    joined = [an_instance(node.name, "a", NEW if node.name in new else "1") for node in (*nodes, *serving)]
    return an_upgrade(
        *nodes,
        *serving,
        new=new,
        group={"instances": (*joined, *on_their_way)},
        policy=a_policy(update),
        pods=tuple(a_pod(f"p-{node.name}", node.name, app=node.name) for node in nodes),
        instances=instances,
        **fields,
    )


def never():
    raise AssertionError("the capacity is not read")


def plenty():
    nodes = [a_spec(name) for name in ("o1", "o2", "o3", "o4", "n1", "n2")]
    return a_room(nodes, *(some_pods(f"o{number}", 1) for number in range(1, 5)))


def full() -> PodCapacity:
    return replace(plenty(), nodes=tuple(replace(node, allocatable={"pods": 0}) for node in plenty().nodes))


def with_surge(*unassigned, **assigned):
    ahead = {f"i-{new}": OpenLaunch(zone="a") for new in unassigned}
    return {"ahead": ahead | {f"i-{new}": OpenLaunch(zone="a", offset_by=f"i-{old}") for new, old in assigned.items()}}


def test_a_node_drains_before_its_successor_is_ready_when_its_pods_fit_elsewhere():
    found = starts(rolling(), a_record(**with_surge("n1", "n2")), capacity=plenty)
    assert [(one.old, one.new) for one in found] == [("i-o1", "i-n1"), ("i-o2", "i-n2")]


@pytest.mark.parametrize(("owed", "plans"), [((), 0), (("n1",), 1)], ids=["no successor", "one"])
def test_nothing_is_planned_while_no_node_could_start(monkeypatch, owed, plans):
    asked = []
    planned = drain_selection.plan_waves
    monkeypatch.setattr(
        drain_selection, "plan_waves", lambda *given, **named: asked.append(1) or planned(*given, **named)
    )
    assert (len(starts(rolling(), a_record(**with_surge(*owed)))), len(asked)) == (plans, plans)


def test_without_capacity_it_waits_for_its_successor():
    found = starts(rolling(), a_record(**with_surge("n1", "n2")), capacity=full)
    assert [one.old for one in found] == ["i-o1"]


@pytest.mark.parametrize(("capacity", "early"), [(plenty, ["i-o2"]), (full, [])])
def test_a_node_drains_before_its_launch_where_its_pods_fit_on_ready_nodes(capacity, early):
    found = starts(rolling(booting=()), a_record(**with_surge("n1")), capacity=capacity)
    assert [(one.old, one.new, one.early) for one in found][:1] == [("i-o1", "i-n1", False)]
    assert [one.old for one in found if one.early] == early


@pytest.mark.parametrize(
    ("update", "fields"),
    [
        (replace(TWO, terminate="first"), {}),
        (TWO, {"refusal": "it has mixed purchase options"}),
        (TWO, {"others_seen": NOON}),
        (TWO, {"early": tuple(f"i-early{number}" for number in range(6))}),
    ],
    ids=["its decrement is requested before the drain", "the group replaces it", "others scale", "as many are early"],
)
def test_no_node_drains_before_its_launch(update, fields):
    found = starts(rolling(booting=(), update=update), a_record(**with_surge("n1"), **fields), capacity=plenty)
    assert not [one for one in found if one.early]


def test_a_launch_is_still_made_for_a_node_that_started_before_it():
    record = a_record(surge=1, under_way={"i-o1": "t"}, early=("i-o1",), **with_surge())
    assert launches(rolling(old=1, new=(), booting=()), record) == ("a",)


def test_no_more_than_max_unavailable_drain_however_much_capacity_there_is():
    preflight = rolling(booting=("n2", "n3", "n4"))
    found = starts(preflight, a_record(surge=4, **with_surge("n1", "n2", "n3", "n4")), capacity=plenty)
    assert len(found) == 2


@pytest.mark.parametrize(("seconds", "early"), [(299, True), (301, False)])
def test_a_new_node_that_is_late_ends_going_early(seconds, early):
    found = starts(rolling(seconds=seconds), a_record(**with_surge("n1", "n2")), capacity=plenty)
    assert ("i-o2" in {one.old for one in found}) is early


def test_a_termination_request_allows_the_next_launch():
    waiting = launches(rolling(booting=()), a_record(surge=1, **with_surge("n1")))
    zones = launches(rolling(booting=()), a_record(surge=1, under_way={"i-o1": "t"}, **with_surge(n1="o1")))
    assert (waiting, zones) == ((), ("a",))


def test_the_gate_waits_for_the_first_new_nodes_and_not_for_those_that_came_ahead_since_these_have_proven_the_target():
    preflight = rolling(new=("n1",), booting=("n2",), seconds=30)
    assert not gate_of(preflight, NOON - timedelta(seconds=20)).open, "n2 was launched before"
    assert gate_of(preflight, NOON - timedelta(seconds=30)).open, "reported in whole seconds, by another clock"
    assert not gate_of(preflight).open


def test_the_gate_opens_for_new_nodes_that_were_ready_within_the_seconds_by_which_clocks_differ():
    preflight = rolling(new=(), booting=("n2",), seconds=3)
    assert not gate_of(preflight, NOON).open, "the zone's only new node has not joined"
    ready = rolling(new=("n1",), booting=(), seconds=3)
    launched_now = replace(ready.snapshot, instances={"i-n1": an_ec2_instance("n1", seconds=3)})
    assert gate_of(replace(ready, snapshot=launched_now), NOON).open


def test_for_a_target_that_has_proven_to_work_those_of_three_turns_come_ahead_and_no_more_than_old_ones_are_left():
    record, many = a_record(surge=2, **with_surge("n1", "n2")), rolling(old=9, new=("n1", "n2"), booting=())
    assert launches(many, record) == ()
    assert launches(many, record, rolling=True) == ("a",) * 4, "2 at a time, 2 are there"
    assert launches(rolling(old=3, new=("n1", "n2"), booting=()), record, rolling=True) == ("a",)


def test_none_are_launched_while_another_writer_seems_to_have_scaled_the_group_up():
    """Once that is certain nothing is paid for any more: the group would keep what was launched meanwhile."""
    record, many = a_record(surge=2, **with_surge("n1", "n2")), rolling(old=9, new=("n1", "n2"), booting=())
    assert launches(many, replace(record, others_seen=NOON), rolling=True) == ()


def test_no_more_are_launched_ahead_than_the_budgets_allow():
    one = Budget(nodes=1, percent=False, reasons=("Upgrade",))
    policy = a_policy(UpdatePolicy(max_unavailable=4), disruption=DisruptionPolicy(budgets=(one,)))
    nodes = [a_node(f"o{number}", cordoned=True) for number in range(1, 10)]
    found = launches(an_upgrade(*nodes, policy=policy), a_record(surge=2, **with_surge("n1", "n2")), rolling=True)
    assert found == ("a",), "three turns of one node, and two are there"


def test_an_order_of_several_is_counted_as_several():
    record = replace(
        a_record(surge=6),
        orders={"1": LaunchOrder(zone="a", subnet="subnet-a", count=3), "2": LaunchOrder(zone="a", subnet="subnet-b")},
    )
    assert launches(rolling(old=9, new=(), booting=()), record) == ("a", "a")


def test_what_is_not_offset_never_exceeds_the_surge_and_what_is_on_its_way():
    assert most_ahead(6, 1) == 9
    assert most_ahead(33, 33) == 132
    assert most_ahead(0, 10) == 0
    one = UpdatePolicy(max_unavailable=1)
    leaving = {f"n{number}": f"o{number}" for number in range(1, 5)}
    record = a_record(surge=1, under_way={f"i-{old}": "t" for old in leaving.values()}, **with_surge(**leaving))
    assert launches(rolling(old=9, new=tuple(leaving), booting=(), update=one), record) == ()
    three = {new: old for new, old in leaving.items() if new != "n4"}
    record = a_record(surge=1, under_way={f"i-{old}": "t" for old in three.values()}, **with_surge(**three))
    assert launches(rolling(old=9, new=tuple(three), booting=(), update=one), record) == ("a",)


def test_surge_comes_up_last_in_a_zone_whose_nodes_others_have_cordoned():
    zones = {"o1": "a", "o2": "a", "o3": "b"}
    open_nodes = [a_node(name, zone) for name, zone in zones.items()]
    assert launches(an_upgrade(*open_nodes), a_record(surge=1)) == ("a",)
    evacuated = [a_node(name, zone, cordoned=zone == "a") for name, zone in zones.items()]
    assert launches(an_upgrade(*evacuated), a_record(surge=1)) == ("b",)
