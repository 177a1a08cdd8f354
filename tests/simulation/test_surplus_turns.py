"""Capacity launched ahead of a zonal shift, with pods on it when the shift is over: its nodes drain one after the
other, and those without pods at once.
"""

from dataclasses import replace

import pytest

from leeward.model.zonal_shift import ShiftKind
from leeward.policy.document import OnShift
from simulation.aws.recovery import Shifted, zone_id_of
from simulation.convergence import is_tainted
from simulation.fault_rates import Faults
from simulation.pace_rules import holds_pods
from simulation.world import World
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment
from tests.simulation.upgrade_stand_in import updating

ZONE, GROUP, SIZE = "us-east-1a", "app", 9
BEGINS, POPULATED, ENDS = 300.0, 600.0, 900.0


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
