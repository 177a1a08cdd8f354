"""A spot warning in a zone that holds more nodes than its pods do: where the replacement is launched, and how long its
pods wait for it."""

import pytest

from leeward.placement import replacement
from simulation.fault_rates import Faults
from simulation.placement_preferences import ZONE, apart, even
from simulation.rule import Rule
from simulation.world import World
from tests.simulation.fleet_stand_in import ZONES, Fleet, GroupPlan, deployment

FIRST = ZONES[0]
WARNED = 400.0  # seconds
HOURS = 0.3
SPREAD = even("shop", ZONE, "DoNotSchedule")
BOOT = 60.0  # seconds, the longest of a node in these worlds
ONE_NODE_EACH = "1200m"  # of the two cores of a node


def a_world(seed, rule, *, balanced):
    """Three spot nodes, one in each zone, with one pod of the app on each. Two nodes of others stand in the first zone
    and take no pods: the zone has the most cores, and stays a domain of the rule.
    """
    shop = deployment("shop", 3)
    shop["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = ONE_NODE_EACH
    shop["spec"]["template"]["spec"].update(rule)
    others = GroupPlan(name="db", spot=False, size=2, zones=(FIRST,), instance_type="m5.xlarge", selected=False)
    world = World(seed, Fleet(groups=(GroupPlan(maximum=6), others), workloads=(shop,)), Faults.none(), ())
    world.timeline.after(5, lambda: closed(world), "others")
    if not balanced:
        world.timeline.after(10, lambda: world.system.changes.suspend("spot", "AZRebalance"), "owner")
    world.timeline.after(WARNED, lambda: warned(world), "warning")
    return world


def closed(world):
    members = {member.id for member in world.groups["db"].instances}
    for node in list(world.cluster.store.each("nodes")):
        if node["spec"]["providerID"].rpartition("/")[2] in members:
            taints = [{"key": "db", "value": "", "effect": "NoSchedule"}]
            world.cluster.patch("nodes", node["metadata"]["name"], {"spec": {"taints": taints}})


def warned(world):
    member = next(one for one in world.groups["spot"].instances if one.zone == FIRST)
    world.fleet.notices.spot_warning(world.fleet.instances[member.id])


def waits(seed, rule, *, balanced):
    """Seconds for which each pod had no node after the warning, the zones of the group at the end, and what broke."""
    world = a_world(seed, rule, balanced=balanced)
    began, pending, waited = world.timeline.now(), {}, []

    def look():
        now = world.timeline.now() - began
        for pod in world.cluster.store.each("pods"):
            name = pod["metadata"]["name"]
            if now > WARNED and name.startswith("shop-"):
                if not pod["spec"].get("nodeName"):
                    pending.setdefault(name, now)
                elif name in pending:
                    waited.append(now - pending.pop(name))

    world.seen = look
    outcome = world.run(HOURS, 900)
    zones = sorted(member.zone for member in world.groups["spot"].instances)
    broken = [one for one in outcome.violations if balanced or one.rule is not Rule.RESTORED]  # the owner suspended it
    return [*waited, *(float("inf") for _ in pending)], zones, broken


def judged(seed, rule, *, balanced):
    without, _, _ = waits(seed, {}, balanced=balanced)
    waited, zones, broken = waits(seed, rule, balanced=balanced)
    assert broken == []  # first: the rules of the simulation have to see it too
    assert len(waited) == 1, "a second node moved"
    assert waited[0] <= min(without) + BOOT
    assert zones == sorted(ZONES)


@pytest.mark.parametrize("balanced", [True, False], ids=["AZRebalance", "suspended"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_pod_that_asks_for_its_zone_waits_no_longer_than_another_and_no_second_node_moves(seed, balanced):
    judged(seed, SPREAD, balanced=balanced)


def test_a_launch_where_its_pods_may_not_run_is_found(monkeypatch):
    monkeypatch.setattr(replacement, "refusing_last", lambda options, zones: options)
    _, _, broken = waits(1, SPREAD, balanced=False)
    assert [one.rule for one in broken] == [Rule.SERVES]


@pytest.mark.long
@pytest.mark.parametrize("balanced", [True, False], ids=["AZRebalance", "suspended"])
@pytest.mark.parametrize("rule", [SPREAD, apart("shop", ZONE)], ids=["spread", "apart"])
def test_no_pod_waits_longer_in_any_of_two_hundred_worlds(rule, balanced):
    for seed in range(200):
        judged(seed, rule, balanced=balanced)
