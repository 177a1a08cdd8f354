"""Subnets of new nodes, one after the other: zone first, then within it the subnet with the most free addresses.

Decides nothing about the properties of a node. Without accounting the subnet is chosen at random among those with a
free address. Source: Cast AI, "Subnet selection" (random from the available set; by usage: the greatest number of free
addresses)."""

from collections.abc import Sequence
from dataclasses import replace

from leeward.model.counts import count_of
from leeward.model.subnet import Subnet
from leeward.placement.scene import Chance, PlacementScene
from leeward.placement.verdict import Choice, Placement, ZoneVerdict, ips
from leeward.placement.zones import judge_zones


def place(scene: PlacementScene, count: int, chance: Chance) -> Placement:
    """Return subnets for `count` nodes. Each takes its addresses and its cores before the next is placed.

    The same scene and the same seed give the same answer, whatever the order of subnets and zones. Where no zone is
    left, fewer subnets are returned, and `refused` gives the reason for every zone.
    """
    choices: list[Choice] = []
    verdicts: tuple[ZoneVerdict, ...] = judge_zones(scene, chance)
    while len(choices) < count:
        zone = next((verdict for verdict in verdicts if verdict.usable), None)
        if zone is None:
            break
        choice = choose_in_zone(scene, zone, chance)
        choices.append(choice)
        scene = _after(scene, choice)
        if len(choices) < count:
            verdicts = judge_zones(scene, chance)
    refused = tuple(verdict for verdict in verdicts if not verdict.usable)
    return Placement(wanted=count, choices=tuple(choices), refused=refused)


def choose_in_zone(scene: PlacementScene, zone: ZoneVerdict, chance: Chance) -> Choice:
    """Return the subnet of a usable zone: most free addresses with accounting, else random; random among equals too."""
    fitting = sorted(
        (
            subnet
            for subnet in scene.subnets
            if subnet.zone == zone.zone
            and scene.free_ips(subnet) >= scene.demand.ips
            and scene.forbidding(subnet) is None
        ),
        key=lambda subnet: subnet.id,
    )
    best = _freest(scene, fitting) if scene.demand.accounting.on else fitting
    chosen = best[chance.randrange(len(best))]
    return Choice(
        subnet=chosen.id,
        zone=zone.zone,
        free_ips=scene.free_ips(chosen),
        ips=scene.demand.ips,
        why=f"{zone.zone}: {zone.why}; {_why(scene, chosen, best, fitting)}",
    )


def _freest(scene: PlacementScene, fitting: Sequence[Subnet]) -> list[Subnet]:
    most = max(scene.free_ips(subnet) for subnet in fitting)
    return [subnet for subnet in fitting if scene.free_ips(subnet) == most]


def _why(scene: PlacementScene, chosen: Subnet, best: Sequence[Subnet], fitting: Sequence[Subnet]) -> str:
    if len(fitting) == 1:
        return f"{chosen.id} is the only subnet there with room"
    if not scene.demand.accounting.on:
        return f"{chosen.id} chosen at random among {count_of(len(fitting), 'subnet')}"
    free = ips(scene.free_ips(chosen))
    if len(best) > 1:
        return f"{chosen.id} chosen at random among {count_of(len(best), 'subnet')} with {free} free"
    return f"{chosen.id} has the most free of {count_of(len(fitting), 'subnet')}, {free}"


def _after(scene: PlacementScene, choice: Choice) -> PlacementScene:
    promised = {**scene.promised, choice.subnet: scene.promised.get(choice.subnet, 0) + choice.ips}
    allocated = {**scene.cores, choice.zone: scene.cores.get(choice.zone, 0) + scene.demand.millicores}
    return replace(scene, promised=promised, cores=allocated)
