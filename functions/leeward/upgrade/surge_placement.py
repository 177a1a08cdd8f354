"""Subnet of a new node that is launched ahead, in the zone of the old nodes that it replaces.

Decides among the group's subnets in that zone by placement's own rules: free addresses less reserved ones, at random
among equals. Facts that cannot be read are left out, as for replacements."""

from collections.abc import Sequence
from dataclasses import replace

from leeward.errors import LeewardError
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.subnet import Subnet
from leeward.placement.replacement import Known, Leaving, plan_launch
from leeward.placement.scene import SeededChance
from leeward.ports.compute import Network
from leeward.ports.records import Catalog
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight import zone_of
from leeward.upgrade.scene import Scene


def places_for(
    scene: Scene, zones: Sequence[str], network: Network, catalog: Catalog, *, avoid: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """Return (zone, subnet) for each zone asked for, those left out that have no subnet with room. `avoid`: subnets
    that have just lacked capacity, taken last.
    """
    facts, known = _facts(scene, catalog), _subnets(scene.group, network)
    found: list[tuple[str, str]] = []
    for zone in zones:
        mine = [one for one in known if one.zone == zone]
        mine = [one for one in mine if one.id not in avoid] or mine
        option = _choose(scene, facts, mine, f"{scene.group.name}/{zone}/{len(found)}")
        if option:
            found.append((zone, option))
            known = [_less(one, option) for one in known]
    return found


def _choose(scene: Scene, facts: ClusterFacts, subnets: Sequence[Subnet], seed: str) -> str | None:
    """Return the subnet, None where the zone has no subnet of the group with room for the node and its pods."""
    if not subnets:
        return None
    model = _fullest(scene, subnets[0].zone)
    if model is None:
        return subnets[0].id
    world = scene.preflight.world
    node = model.node
    instance = scene.instances.get(model.instance.id)
    leaving = Leaving(
        instance=model.instance.id,
        zone=subnets[0].zone,
        subnet=instance.subnet if instance else subnets[0].id,
        type=model.instance.type or (instance.type if instance else ""),
        millicores=node.cpu if node else 0,
        pods=tuple(world.pods_on(node.name)) if node else (),
    )
    plan = plan_launch(
        scene.group, leaving, Known(facts=facts, subnets=tuple(subnets), cni=scene.policy.cni), SeededChance(seed)
    )
    return plan.options[0].subnet if plan.options else None


def _fullest(scene: Scene, zone: str) -> Member | None:
    """Return the old node with the most pods in the zone: a new one has to hold at least as many."""
    world = scene.preflight.world
    old = [one for one in scene.preflight.members if one.age is Age.OLD and zone_of(world, one) == zone]
    return max(old, key=lambda one: len(world.pods_on(one.node.name)) if one.node else -1, default=None)


def _less(subnet: Subnet, taken: str) -> Subnet:
    """Return the subnet less one address if it was taken: a node has at least one of its own from
    the moment it starts.
    """
    return replace(subnet, free_ips=max(subnet.free_ips - 1, 0)) if subnet.id == taken else subnet


def _facts(scene: Scene, catalog: Catalog) -> ClusterFacts:
    try:
        return ClusterFacts.from_sheets(catalog.read(scene.preflight.world.cluster))
    except LeewardError:
        return ClusterFacts()


def _subnets(group: Group, network: Network) -> list[Subnet]:
    """Return the group's subnets with the addresses that are free now; empty for a group without subnets of its own."""
    live = network.subnets(group.subnets) if group.subnets else {}
    return [live[name] for name in group.subnets if name in live]
