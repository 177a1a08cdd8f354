"""Order of zones: fewest allocated CPU cores first, random among equals, zones without capacity dropped; zones whose
nodes are all cordoned by others or NotReady come last.

Decides which zone the next node is placed in and why each other one is not used. Source: Cast AI, "How zone allocation
works".

Subnets of new nodes, one after the other: zone first, then within it the subnet with the most free addresses.

Decides nothing about the properties of a node. Without accounting the subnet is chosen at random among those with a
free address. Source: Cast AI, "Subnet selection" (random from the available set; by usage: the greatest number of free
addresses)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from leeward.model.counts import count_of
from leeward.model.subnet import Subnet
from leeward.placement.scene import Chance, PlacementScene
from leeward.placement.verdict import Choice, Placement, ZoneStanding, ZoneVerdict, cores, ips, listed

LAST_CHOICE = "the last choice, because its nodes are all cordoned by others or NotReady"


def zone_order(
    zones: Iterable[str], allocated: Mapping[str, int], chance: Chance, closed: Collection[str] = ()
) -> tuple[str, ...]:
    """Return zones by allocated thousandths of a core, closed ones last; equals in random order, whatever the input
    order.
    """
    left = sorted(zones)
    drawn: list[str] = []
    while left:
        drawn.append(left.pop(chance.randrange(len(left))))
    return tuple(sorted(drawn, key=lambda zone: (zone in closed, allocated.get(zone, 0))))


def judge_zones(scene: PlacementScene, chance: Chance) -> tuple[ZoneVerdict, ...]:
    """Return every zone in the order in which it would be tried: the first usable one is `next`. Where all zones are
    closed, none is the last choice.
    """
    scene = replace(scene, closed=scene.closed if set(scene.zones) - scene.closed else frozenset())
    by_zone = _by_zone(scene.subnets)
    zones = zone_order(scene.zones, scene.cores, chance, scene.closed)
    ordered = [judge(scene, zone, by_zone.get(zone, ())) for zone in zones]
    first = next((index for index, verdict in enumerate(ordered) if verdict.usable), None)
    if first is not None:
        why = f"{_why_next(ordered, first, scene.closed)}; {ordered[first].why}"
        ordered[first] = replace(ordered[first], standing=ZoneStanding.NEXT, why=why)
    return tuple(ordered)


def judge(scene: PlacementScene, zone: str, subnets: Sequence[Subnet]) -> ZoneVerdict:
    """Return the verdict on one zone by itself: whether a node may land there, and whether a subnet has enough
    addresses; `subnets` are the zone's.
    """
    allowed = [subnet for subnet in subnets if scene.forbidding(subnet) is None]
    free = {subnet.id: scene.free_ips(subnet) for subnet in allowed}
    verdict = ZoneVerdict(
        zone=zone,
        millicores=scene.cores.get(zone, 0),
        free_ips=sum(free.values()),
        standing=ZoneStanding.USABLE,
        why="",
    )
    if not subnets:
        return replace(verdict, standing=ZoneStanding.NO_SUBNET, why="no subnet that a node could use is there")
    if not allowed:
        sources = listed(sorted({one.source for subnet in subnets if (one := scene.forbidding(subnet))}))
        return replace(verdict, standing=ZoneStanding.NOT_ALLOWED, why=f"not allowed by {sources}")
    best = max(sorted(free), key=lambda name: free[name])
    standing = ZoneStanding.USABLE if free[best] >= scene.demand.ips else ZoneStanding.NO_IPS
    last = f"; {LAST_CHOICE}" if zone in scene.closed else ""
    return replace(verdict, standing=standing, why=f"{_room(scene, best, free[best], len(free))}{last}")


def _room(scene: PlacementScene, best: str, free: int, subnets: int) -> str:
    demand = scene.demand
    most = f"{best} has {free} free" if subnets == 1 else f"the freest of {subnets} subnets, {best}, has {free} free"
    promised = scene.promised.get(best, 0)
    less = f" ({promised} promised to launches)" if promised else ""
    if not demand.accounting.on:
        return f"{most}{less}; a node takes at least 1, pods are not counted: {demand.accounting.why}"
    return f"{most}{less}, {demand.node} takes {ips(demand.ips)}"


def _why_next(ordered: Sequence[ZoneVerdict], first: int, closed: Collection[str]) -> str:
    """Return the reason for the chosen zone, in words with numbers; zones before it have been dropped. Closed zones
    compete only with closed ones.
    """
    chosen = ordered[first]
    usable = [verdict for verdict in ordered if verdict.usable and verdict is not chosen]
    rivals = [verdict for verdict in usable if (verdict.zone in closed) == (chosen.zone in closed)]
    equal = [verdict.zone for verdict in rivals if verdict.millicores == chosen.millicores]
    amount = cores(chosen.millicores)
    if not rivals:
        others = " whose nodes take pods" if usable else ""
        why = f"the only zone left{others}, {amount} allocated"
    elif equal:
        why = f"{amount} allocated, as in {listed(sorted(equal))}: chosen at random"
    else:
        why = f"fewest cores allocated ({amount}; {listed(f'{one.zone} {cores(one.millicores)}' for one in rivals)})"
    dropped = listed(verdict.zone for verdict in ordered[:first])
    return f"{why}; {dropped} dropped" if dropped else why


def _by_zone(subnets: Iterable[Subnet]) -> dict[str, list[Subnet]]:
    found: dict[str, list[Subnet]] = {}
    for subnet in subnets:
        found.setdefault(subnet.zone, []).append(subnet)
    return found


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
