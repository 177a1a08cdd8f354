"""Capacity launched ahead of a zonal shift, with pods on it when the shift is over: its nodes drain one after the
other, and those without pods at once.
"""

from dataclasses import replace

import pytest

from leeward.model.zonal_shift import ShiftKind
from leeward.policy.document import OnShift, Rebalance
from simulation.aws.recovery import Shifted, zone_id_of
from simulation.convergence import is_tainted
from simulation.fault_rates import Faults
from simulation.pace_rules import holds_pods
from simulation.world import World
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment
from tests.simulation.upgrade_stand_in import Upgraded, a_fleet, updating

ZONE, GROUP, SIZE = "us-east-1a", "app", 9
BEGINS, POPULATED, ENDS = 300.0, 600.0, 900.0
WARNED = 2400.0  # a younger node is not replaced for a recommendation


def shifted(most, pods):
    """Nodes that were launched ahead, and the most of the group that were tainted with pods at once."""
    written = updating(max_unavailable=most)
    chain = tuple(replace(one, on_shift=OnShift.PRESCALE) for one in written.policies)
    plan = GroupPlan(name=GROUP, spot=False, size=SIZE, maximum=2 * SIZE)
    fleet = Fleet(
        groups=(plan,), workloads=(deployment("web", 27), budget("web", 9)), policies=replace(written, policies=chain)
    )
    world = World(1, fleet, Faults.none(), ())
    seen, shift, clock = [0], Shifted(zone=ZONE, began=0.0, calls_for_capacity=True), world.timeline

    def begin():
        shift.began = clock.now()
        world.system.recovery.start(world.cluster_name, zone_id_of(ZONE), ShiftKind.AUTOSHIFT, clock.instant())
        world.system.recovery.history(world.cluster_name).append(shift)

    def end():
        world.system.recovery.end(world.cluster_name, zone_id_of(ZONE))
        shift.ended = clock.now()

    def look():
        tainted = [node for node in world.cluster.store.each("nodes") if is_tainted(node)]
        seen.append(sum(holds_pods(node, world) for node in tainted))

    clock.after(BEGINS, begin, "the zone is ill")
    if pods:
        clock.after(POPULATED, lambda: world.cluster.create("deployments", deployment("more", pods), "default"), "pods")
    clock.after(ENDS, end, "the zone is well")
    world.seen = look
    outcome = world.run(0.5, 3600.0)
    assert [str(one) for one in outcome.violations] == []
    assert world.groups[GROUP].desired == SIZE
    ends = [line for line in world.story if "claim" in line and "surplus" in line]
    return len(ends), max(seen)


@pytest.mark.parametrize("limit", [1, 2])
def test_the_nodes_launched_ahead_drain_within_maxunavailable(limit):
    ahead, most = shifted(limit, pods=18)
    assert (ahead, most) == (3, limit)


def test_nodes_launched_ahead_without_pods_leave_at_once():
    assert shifted(1, pods=0) == (3, 0)


@pytest.mark.parametrize("upgrades", [False, True])
def test_offsets_that_are_passed_on_drain_one_after_the_other_also_beside_an_upgrade(upgrades):
    """EC2 takes three spot nodes whose replacements serve already, and the group replaces them as well."""
    workloads = (deployment("web", 27), budget("web", 9))
    fleet = a_fleet(SIZE, maximum=2 * SIZE, spot=True, workloads=workloads, max_unavailable=1)
    chain = tuple(
        replace(one, interruption=replace(one.interruption, rebalance=Rebalance.REPLACE))
        for one in fleet.policies.policies
    )
    world = Upgraded(replace(fleet, policies=replace(fleet.policies, policies=chain)))
    if upgrades:
        world.start(at=WARNED + 40, launchTemplateVersion="2")
    leaving, seen = [], [0]

    def warn():
        leaving[:] = list(world.world.fleet.groups[GROUP].members.values())[:3]
        for member in leaving:
            world.world.fleet.notices.rebalance_recommendation(member)

    def take():
        for member in leaving:
            world.world.fleet.end_instance(member, direct=True)

    def look():
        mine = {f"node-{member.id}" for member in world.group.instances} - {f"node-{member.id}" for member in leaving}
        nodes = [node for node in world.world.cluster.store.each("nodes") if node["metadata"]["name"] in mine]
        seen.append(sum(is_tainted(node) and holds_pods(node, world.world) for node in nodes))

    world.at(WARNED, warn).at(WARNED + 30, take).watch(look)
    world.at(WARNED + 50, lambda: world.world.cluster.create("deployments", deployment("more", 12), "default"))
    world.run(1.5)
    claims = [line for line in world.world.story if "terminate claim" in line and "surplus" in line]
    assert (len(claims) >= 2, max(seen), world.group.desired) == (True, 1, SIZE)
    assert world.ended() == ("Upgraded" if upgrades else "")
