"""Replicas that demand to be spread stay spread through disruption, and their pods can start while nodes drain."""

from datetime import timedelta

import pytest

from leeward.disruption.command import CommandDecision, MethodName
from leeward.disruption.plan import plan_disruption, validate
from tests.unit.disruption.fleet import ZONES, a_budget, a_fleet, a_policy, rules

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DISRUPTED = {"key": "leeward.dev/disrupted", "effect": "NoSchedule"}


def spread(key=ZONE, **more):
    selector = {"matchLabels": {"app": "web"}}
    one = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"labels": {"app": "web"}, "topologySpreadConstraints": [{**one, **more}]}


def three_replicas(*policies, key=ZONE, spare=(), **more):
    """One replica on the only node of each zone; `spare`: zones with a further node, which another pod keeps."""
    fleet = a_fleet(*policies).group("web", "medium")
    for number, zone in enumerate(ZONES):
        fleet.node(f"n{number}", zone=zone).pod(f"web-{number}", f"n{number}", **spread(key, **more))
    for number, zone in enumerate(spare):
        fleet.node(f"s{number}", zone=zone).pod(f"db-{number}", f"s{number}", cpu="1400m")
    return fleet


def commands(fleet, method=MethodName.CONSOLIDATION):
    return plan_disruption(fleet.snapshot(), only=method).commands


@pytest.mark.parametrize("key", [ZONE, HOST])
def test_no_node_of_three_spread_replicas_is_consolidated(key):
    assert commands(three_replicas(key=key)) == ()


def test_one_command_never_removes_the_replicas_of_two_zones():
    every = a_policy(disruption=rules(budgets=(a_budget(100, percent=True),)))
    assert commands(three_replicas(every)) == ()
    found = commands(three_replicas(every, spare=[ZONES[0]]))
    assert [set(one.nodes) & {"n0", "n1", "n2"} for one in found] in ([], [set()], [{"n0"}])


def test_a_replica_moves_within_its_zone():
    fleet = three_replicas(spare=[ZONES[1]])
    (command,) = commands(fleet)
    assert (command.decision, command.nodes, command.placements) == (
        CommandDecision.DELETE,
        ("n1",),
        {"shop/web-1": "s0"},
    )


def test_a_replacement_names_the_zone_that_keeps_the_skew():
    fleet = three_replicas().group("small", "small")
    (command,) = commands(fleet)
    (zone,) = {ZONES[int(name[1:])] for name in command.nodes}
    assert [one.zones for one in command.replacements] == [(zone,)]


def test_an_expired_node_is_replaced_in_the_zone_that_keeps_the_skew():
    policy = a_policy(disruption=rules(expire_after=timedelta(days=1), budgets=(a_budget(1),)))
    (command,) = commands(three_replicas(policy), MethodName.EXPIRATION)
    (name,) = command.nodes
    assert [one.zones for one in command.replacements] == [(ZONES[int(name[1:])],)]


def test_a_node_that_is_leaving_already_stays_a_domain():
    fleet = a_fleet().group("web", "medium", zones=ZONES[:2])
    fleet.node("n0", zone=ZONES[0]).node("n1", zone=ZONES[0]).node("n2", zone=ZONES[1])
    fleet.pod("web-0", "n0", **spread()).pod("web-2", "n2", **spread()).pod("db", "n1", cpu="1400m")
    assert [one.nodes for one in commands(fleet)] == [("n0",)]
    again = a_fleet().group("web", "medium", zones=ZONES[:2])
    again.node("n0", zone=ZONES[0]).node("n1", zone=ZONES[1]).node("n2", zone=ZONES[1])
    again.node("n3", zone=ZONES[2], taints=[DISRUPTED])
    again.pod("web-0", "n0", **spread()).pod("web-1", "n1", **spread()).pod("web-2", "n2", **spread())
    assert commands(again) == ()


def test_a_zone_without_nodes_that_a_group_can_launch_into_is_a_domain():
    def two_zones(zones):
        fleet = a_fleet().group("web", "medium", zones=zones)
        for number, zone in enumerate((ZONES[0], ZONES[0], ZONES[1], ZONES[1])):
            fleet.node(f"n{number}", zone=zone).pod(f"web-{number}", f"n{number}", cpu="900m", **spread())
        return fleet

    assert len(commands(two_zones(ZONES[:2]))) == 1
    (command,) = commands(two_zones(ZONES))
    assert [one.zones for one in command.replacements] == [(ZONES[2],)]


def test_an_earlier_command_is_dropped_where_the_pods_could_not_start_during_the_drain():
    (command,) = commands(three_replicas(spare=[ZONES[1]]))
    now = three_replicas(spare=[ZONES[2]]).snapshot()
    assert validate(now, MethodName.CONSOLIDATION, [command]).commands == ()


@pytest.mark.parametrize(("more", "goes"), [({}, False), ({"whenUnsatisfiable": "ScheduleAnyway"}, True)])
def test_a_constraint_that_is_a_preference_holds_no_node(more, goes):
    assert bool(commands(three_replicas(**more))) is goes


def test_a_replacement_goes_last_to_a_zone_whose_nodes_others_have_cordoned():
    fleet = a_fleet().group("web", "large").group("small", "small").node("n0", zone=ZONES[1]).pod("a", "n0", cpu="900m")
    fleet.node("c0", zone=ZONES[0], cordoned=True).pod("b", "c0", cpu="3800m")
    commanded = [one.replacements[0].zones for one in commands(fleet)]
    assert commanded == [(ZONES[1], ZONES[2], ZONES[0])]
