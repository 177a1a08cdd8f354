"""Nodes that are surplus because others ended the instances that they replace: with pods on them they drain one after
the other, and without pods at once.
"""

from dataclasses import replace

import pytest

from leeward.policy.document import Rebalance
from simulation.convergence import is_tainted
from simulation.pace_rules import holds_pods
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import Upgraded, a_fleet

ZONE, GROUP, SIZE = "us-east-1a", "app", 9
BEGINS, POPULATED, ENDS = 300.0, 600.0, 900.0
WARNED = 2400.0  # a younger node is not replaced for a recommendation


def passed_on(limit, pods, *, upgrade=False):
    """EC2 takes three spot nodes whose replacements serve already, and the group replaces them as well. Return the
    world, the terminations of surplus nodes, and the most of the group that were tainted with pods at once.
    """
    workloads = (deployment("web", 27), budget("web", 9))
    fleet = a_fleet(SIZE, maximum=2 * SIZE, spot=True, workloads=workloads, max_unavailable=limit)
    chain = tuple(
        replace(one, interruption=replace(one.interruption, rebalance=Rebalance.REPLACE))
        for one in fleet.policies.policies
    )
    world = Upgraded(replace(fleet, policies=replace(fleet.policies, policies=chain)))
    if upgrade:
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
    if pods:
        more = deployment("more", pods)
        world.at(WARNED + 50, lambda: world.world.cluster.create("deployments", more, "default"))
    world.run(1.5)
    assert world.group.desired == SIZE
    claims = [line for line in world.world.story if "terminate claim" in line and "surplus" in line]
    return world, len(claims), max(seen)


@pytest.mark.parametrize("limit", [1, 2])
def test_surplus_nodes_with_pods_drain_within_maxunavailable(limit):
    _, claims, most = passed_on(limit, pods=12)
    assert (claims >= 2, most) == (True, limit)


def test_surplus_nodes_without_pods_leave_at_once():
    _, claims, most = passed_on(1, pods=0)
    assert (claims >= 2, most) == (True, 0)


def test_surplus_nodes_beside_an_upgrade_drain_with_its_nodes_within_maxunavailable():
    world, claims, most = passed_on(1, pods=12, upgrade=True)
    assert (claims >= 2, most, world.ended()) == (True, 1, "Upgraded")
