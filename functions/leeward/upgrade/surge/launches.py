"""Selection of the new nodes to launch now in a running upgrade of a self-managed group: their zones and subnets.

Decides from one observation and from the record. Launches come ahead of the drains, in the zones of the old nodes
that they replace (docs/designs/upgrade.md). Among the group's subnets in a zone placement's own rules choose: free
addresses less reserved ones, at random among equals. Facts that cannot be read are left out, as for replacements."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from leeward.errors import LeewardError
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group
from leeward.model.subnet import Subnet
from leeward.placement.replacement import Known, Leaving, plan_launch
from leeward.placement.scene import SeededChance, closed_zones
from leeward.ports.compute import Network
from leeward.ports.records import Catalog
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Observation
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.ended_launches import ended_in, is_awaited, is_worn_out
from leeward.upgrade.surge.sizes import NO_LIMIT, Strategy, launch_now, most_ahead, next_increment, unassigned_limit
from leeward.upgrade.waves.drain_selection import waiting, with_decrement


def launches(
    preflight: Preflight, record: UpgradeRecord, *, rolling: bool = False, gating: bool = False
) -> tuple[str, ...] | None:
    """Return zones of new nodes to launch now, one entry for each; None where INCREMENTAL has reached its end without
    success.

    `rolling`: the target has proven to work and no canary is watched: from then on more come ahead than the surge.
    `gating`: the gate waits, as it does again in a start that continues after old nodes were cordoned.
    Empty while another writer seems to have scaled the group up: what was launched then is never offset. A zone whose
    only new node has ended gets another one beyond these numbers, where the group replaced it in another zone.
    """
    if not with_decrement(record) or record.others_seen is not None:
        return ()
    early = [one for one in preflight.old if one.instance.id in record.early]  # their launch is still to come
    old = [*waiting(preflight, record), *early]
    alive = record.alive
    assigned = len(record.assigned)
    most = preflight.max_surge
    ending = _still_ending(preflight, record)
    limit = unassigned_limit(record.strategy, record.surge, _pace(preflight, old), most) if rolling else record.surge
    ahead = launch_now(surge_limit=limit, alive=alive, gone=assigned, old_left=len(old))
    count: int | None = min(ahead, max(most_ahead(record.surge, preflight.parallel, most) - alive - ending, 0))
    if record.strategy is Strategy.INCREMENTAL and not record.cordoned:
        count = _increment(preflight, record, len(old), ending)
    if count is None:
        return None
    now = preflight.snapshot.now
    lacking = Counter(zone_of(preflight.snapshot, one) for one in old)
    outdated = _outdated(preflight, record)
    serving = (new for new in record.unassigned if new not in outdated and is_awaited(record, new, now))
    lacking.subtract(record.ahead[new].zone for new in serving)
    for order in record.orders.values():
        lacking[order.zone] -= order.count
    served, ready = _served(preflight, record, outdated), _zones_ready(preflight)
    for zone in [zone for zone in lacking if zone not in ready and is_worn_out(record, zone)]:
        del lacking[zone]
    bereft = {zone for zone in lacking if lacking[zone] > 0 and zone not in served}
    ended = {zone for zone in bereft if ended_in(record, zone)}
    count = max(count, min(len(ended), max(most - alive - ending, 0)))
    if (
        gating or not record.cordoned
    ):  # the gate waits for each zone, also for one that was closed while the others launched
        opened = bereft - preflight.snapshot.shifted_zones
        count = max(count, min(len(opened), limit + len(outdated) - (alive - assigned), most - alive - ending))
    zones = _zones_in_turn(lacking, served, closed_zones(preflight.snapshot.nodes), count)
    return zones or (() if record.orders else _owed(preflight, record))


def _owed(preflight: Preflight, record: UpgradeRecord) -> tuple[str, ...]:
    """Return zones of the launches that decrements by others take while every other launch has its old node: those with
    the fewest new nodes.
    """
    new = Counter(zone_of(preflight.snapshot, one) for one in preflight.members if one.age is Age.NEW)
    zones = {zone_of(preflight.snapshot, one) for one in preflight.members} - {""} - preflight.snapshot.shifted_zones
    return tuple(sorted(zones, key=lambda zone: (new[zone], zone))[: record.owed])


def _zones_in_turn(lacking: Counter[str], served: set[str], closed: Collection[str], count: int) -> tuple[str, ...]:
    """Return zones for `count` new nodes: first those without one, because the gate waits for them, then by how many
    they lack; closed zones after open ones.
    """
    zones = list[str]()
    for _ in range(count):
        wanting = sorted(name for name in lacking if lacking[name] > 0)
        zone = min(wanting, key=lambda name: (name in served, name in closed, -lacking[name]), default=None)
        if zone is None:
            break
        lacking[zone] -= 1
        served = served | {zone}
        zones.append(zone)
    return tuple(zones)


def _outdated(preflight: Preflight, record: UpgradeRecord) -> set[str]:
    """Return launches that a rollback or another target has made old: they serve no zone, and wait for a new node like
    the others.
    """
    return {one.instance.id for one in preflight.old} & record.ahead.keys()


def _served(preflight: Preflight, record: UpgradeRecord, outdated: Collection[str]) -> set[str]:
    """Return zones that have a new node, launched or ordered."""
    there = {zone_of(preflight.snapshot, one) for one in preflight.members if one.age is Age.NEW}
    now = preflight.snapshot.now
    mine = {new: launch for new, launch in record.ahead.items() if new not in outdated}
    launched = {launch.zone for new, launch in mine.items() if is_awaited(record, new, now)}
    return there | launched | {order.zone for order in record.orders.values()}


def _zones_ready(preflight: Preflight) -> set[str]:
    """Return zones in which a new node is Ready."""
    new = (one for one in preflight.members if one.age is Age.NEW and one.node is not None and one.node.ready)
    return {zone_of(preflight.snapshot, one) for one in new}


def _pace(preflight: Preflight, old: Collection[Member]) -> int:
    """Return how many of the old nodes the limits allow to drain at once, in all zones together."""
    limits = preflight.limits
    zones = {zone_of(preflight.snapshot, one) for one in old}
    return min(limits.together, sum(limits.per_zone.get(zone, limits.together) for zone in zones))


def _still_ending(preflight: Preflight, record: UpgradeRecord) -> int:
    """Count instances that still run although the desired size does not count them any more: their launch is offset
    when their termination is requested from the group, with `terminate: first` before they drain. Each takes a place of
    maxSurge until EC2 ends it. Without a limit of the policy, nodes that have drained before the request end too soon
    to matter.
    """
    if preflight.max_surge == NO_LIMIT and preflight.update.terminate != "first":
        return 0
    counted = {*record.assigned.values(), *record.early}  # by the desired size
    ending = set[str]({*record.under_way, *record.given_up}) - counted
    instances = (preflight.snapshot.instances.get(name) for name in ending)
    return sum(instance is not None and not instance.ended for instance in instances)


def _increment(preflight: Preflight, record: UpgradeRecord, old: int, ending: int) -> int | None:
    """Return one for each zone first, then one by one while a zone is without a new node. Launches elsewhere, and those
    that a rollback has made old, bring no new node there: they count against maxSurge alone. `ending`: instances that
    take places of maxSurge for a while.
    """
    zones = {zone_of(preflight.snapshot, one) for one in preflight.old} - preflight.snapshot.shifted_zones
    served = {zone_of(preflight.snapshot, one) for one in preflight.members if one.age is Age.NEW}
    present = {one.instance.id for one in preflight.members}
    if record.orders or record.ahead.keys() - present:
        return 0
    mine = record.ahead.keys() - _outdated(preflight, record)
    launched = sum(record.ahead[new].zone in zones for new in mine)
    most = max(preflight.max_surge - (len(record.ahead) - launched), 0)
    if launched and len(zones & served) >= min(len(zones), preflight.max_surge):
        return 0  # as many zones as maxSurge serves at a time: the gate opens
    more = next_increment(launched, len(zones), len(zones - served), most)
    return None if more is None else min(more, old, max(most - launched - ending, 0))


def places_for(
    observation: Observation,
    zones: Sequence[str],
    network: Network,
    catalog: Catalog,
    *,
    avoid: frozenset[str] = frozenset(),
) -> list[tuple[str, str]]:
    """Return (zone, subnet) for each zone asked for, those left out that have no subnet with free addresses. `avoid`:
    subnets that have just lacked capacity, taken last. A turn that launches nothing asks for no addresses.
    """
    if not zones:
        return []
    facts, known = _facts(observation, catalog), _subnets(observation.group, network)
    places: list[tuple[str, str]] = []
    for zone in zones:
        if facts.shifts.reason(zone):
            continue
        mine = [one for one in known if one.zone == zone]
        mine = [one for one in mine if one.id not in avoid] or mine
        option = _choose(observation, facts, mine, f"{observation.group.name}/{zone}/{len(places)}")
        if option:
            places.append((zone, option))
            # a node has at least one address of its own from the moment it starts
            known = [replace(one, free_ips=max(one.free_ips - 1, 0)) if one.id == option else one for one in known]
    return places


def _choose(observation: Observation, facts: ClusterFacts, subnets: Sequence[Subnet], seed: str) -> str | None:
    """Return the subnet, None where the zone has no subnet of the group with addresses for the node and its pods."""
    if not subnets:
        return None
    model = _fullest(observation, subnets[0].zone)
    if model is None:
        return subnets[0].id
    snapshot = observation.preflight.snapshot
    node = model.node
    instance = observation.instances.get(model.instance.id)
    leaving = Leaving(
        instance=model.instance.id,
        zone=subnets[0].zone,
        subnet=instance.subnet if instance else subnets[0].id,
        type=model.instance.type or (instance.type if instance else ""),
        millicores=node.cpu if node else 0,
        pods=tuple(snapshot.pods_on(node.name)) if node else (),
    )
    plan = plan_launch(
        observation.group,
        leaving,
        Known(facts=facts, subnets=tuple(subnets), cluster=snapshot.cluster, cni=observation.policy.cni),
        SeededChance(seed),
    )
    return plan.options[0].subnet if plan.options else None


def _fullest(observation: Observation, zone: str) -> Member | None:
    """Return the old node with the most pods in the zone: a new one has to hold at least as many."""
    snapshot = observation.preflight.snapshot
    old = [one for one in observation.preflight.members if one.age is Age.OLD and zone_of(snapshot, one) == zone]
    return max(old, key=lambda one: len(snapshot.pods_on(one.node.name)) if one.node else -1, default=None)


def _facts(observation: Observation, catalog: Catalog) -> ClusterFacts:
    try:
        return ClusterFacts.from_sheets(catalog.read(observation.preflight.snapshot.cluster))
    except LeewardError:
        return ClusterFacts()


def _subnets(group: Group, network: Network) -> list[Subnet]:
    """Return the group's subnets with the addresses that are free now; empty for a group without subnets of its own."""
    live = network.subnets(group.subnets) if group.subnets else {}
    return [live[name] for name in group.subnets if name in live]
