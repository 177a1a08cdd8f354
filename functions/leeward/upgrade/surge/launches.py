"""Selection of the new nodes to launch now in a running upgrade of a self-managed group: their zones and subnets.

Decides from one observation and from the record. Launches come ahead of the drains, in the zones of the old nodes
that they replace (docs/designs/upgrade.md). Among the group's subnets in a zone placement's own rules choose: free
addresses less reserved ones, at random among equals. Facts that cannot be read are left out, as for replacements.

Launches whose instance has ended before an old node offset them, and decrements by others, are settled from the group's
scaling history (docs/designs/capacity-ledger.md). An instance that ended with decrement has offset its own launch. One
that the group replaces hands its launch on to the replacement. Any other instance that another actor takes out with
decrement takes an open launch: the surge was in that actor's view."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.errors import LeewardError
from leeward.model.capacity import Offset
from leeward.model.facts import ClusterFacts
from leeward.model.group import Group, ScalingActivity
from leeward.model.subnet import Subnet
from leeward.model.termination import TerminationRecord
from leeward.placement.replacement import LeavingInstance, PlacementFacts, plan_launch
from leeward.placement.scene import SeededChance, closed_zones
from leeward.ports.compute import Network
from leeward.ports.records import Catalog, Claims
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import Ending, by_request
from leeward.termination.ledger_settlement import offsets_another
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import with_warning, without
from leeward.upgrade.gate import CLOCKS
from leeward.upgrade.members import Age, Member
from leeward.upgrade.observation import Observation
from leeward.upgrade.preflight.model import Preflight, zone_of
from leeward.upgrade.record import EndedLaunch, OpenLaunch, UpgradeRecord
from leeward.upgrade.surge.sizes import NO_LIMIT, Strategy, launch_now, most_ahead, next_increment, unassigned_limit
from leeward.upgrade.waves.drain_selection import waiting, with_decrement

REPLACED_WITHIN = timedelta(minutes=3)  # by its group; until then the zone of an ended instance counts as served
MOST_IN_A_ZONE = 3  # launches of one start that may end early in a zone in which no new node is Ready
MOST_KEPT, MOST_TAKEN = 30, 100
LONGEST_CAUSE = 200


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
    leaving = LeavingInstance(
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
        PlacementFacts(facts=facts, subnets=tuple(subnets), cluster=snapshot.cluster, cni=observation.policy.cni),
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


def settled(
    record: UpgradeRecord, observation: Observation, activities: Sequence[ScalingActivity], claims: Claims
) -> UpgradeRecord:
    """Return the record without launches that their own end has offset, with replacements in place of the others that
    have ended, and without launches that decrements by others have taken. Run again on the result, it changes nothing.
    """
    staying = capacity_ledger.staying(observation.group)
    gone = [new for new in record.unassigned if new not in staying]
    terminations = read_apart(gone, claims).read
    for new in gone:
        activity = next((one for one in activities if one.leaves == new), None)
        if activity is not None:
            record = _ended(record, new, activity, terminations.get(new), observation)
    return _taken_by_others(record, observation, activities, claims)


def _ended(
    record: UpgradeRecord,
    new: str,
    activity: ScalingActivity,
    termination: TerminationRecord | None,
    observation: Observation,
) -> UpgradeRecord:
    record = _with_ended(record, new, activity)
    another = offsets_another(termination, new)
    own = new not in record.taken  # else its decrement has settled another launch
    if capacity_ledger.ending(new, [activity]) is Ending.SHRUNK and own and not another:
        return replace(without(record, [new]), taken=_with_taken(record, new))
    heir = _replacement(termination) if another else _heir(record, observation, activity.at)
    return _handed_on(record, new, heir, observation) if heir else record


def _with_ended(record: UpgradeRecord, new: str, activity: ScalingActivity) -> UpgradeRecord:
    if new in record.ended_early:
        return record
    launch = EndedLaunch(zone=record.ahead[new].zone, at=activity.at, cause=activity.cause[:LONGEST_CAUSE])
    kept = [*record.ended_early.items(), (new, launch)][-MOST_KEPT:]
    warning = f"{new} in {launch.zone} was launched ahead and ended before an old node left for it: {launch.cause}"
    return with_warning(replace(record, ended_early=dict(kept)), warning)


def _replacement(termination: TerminationRecord | None) -> str:
    """Return the instance that the termination of an ended launch launched in its place, whose launch it offset."""
    surge = termination.surge if termination is not None else None
    return surge.instance if surge is not None else ""


def _heir(record: UpgradeRecord, observation: Observation, at: datetime) -> str:
    """Return the instance that the group launched in place of one that ended at `at`, empty while there is none: a new
    node where there is one, else one of an earlier target, which the group launched between two starts.
    """
    known = {*record.ahead, *record.counted, *record.ended_early}
    later = list[tuple[bool, datetime, str]]()
    for member in observation.preflight.members:
        instance = observation.instances.get(member.instance.id)
        if instance is not None and instance.id not in known and instance.launched >= at - CLOCKS:
            later.append((member.age is not Age.NEW, instance.launched, instance.id))
    return min(later, default=(False, at, ""))[2]


def _handed_on(record: UpgradeRecord, new: str, heir: str, observation: Observation) -> UpgradeRecord:
    if heir in record.ahead:
        return record
    zones = {one.instance.id: one.instance.zone for one in observation.preflight.members}
    place = OpenLaunch(zone=zones.get(heir) or record.ahead[new].zone)
    return replace(record, ahead={**without(record, [new]).ahead, heir: place})


def _taken_by_others(
    record: UpgradeRecord, observation: Observation, activities: Sequence[ScalingActivity], claims: Claims
) -> UpgradeRecord:
    """Settle as many open launches as others have taken members out with decrement: no more than the desired size is
    smaller than the record explains, and only launches that no termination is requested to offset. Where each is
    requested, as many are owed: `launches` adds them, and the next turn settles them.
    """
    lacking = record.explained - observation.group.desired
    others = _decrements(record, activities, claims)[:lacking] if lacking > 0 and record.ahead else []
    for name, new in zip(others, reversed(record.unassigned), strict=False):
        record = replace(without(record, [new]), taken=_with_taken(record, name))
        record = with_warning(record, f"others took {name} out with decrement: it offsets the launch of {new}")
    owed = sum(name not in record.taken for name in others)
    return replace(record, owed=owed) if owed != record.owed else record


def _decrements(record: UpgradeRecord, activities: Sequence[ScalingActivity], claims: Claims) -> list[str]:
    """Return the instances that others took out with decrement since the first launch and that settled no launch."""
    known = {*record.taken, *record.under_way}
    left = [one.leaves for one in activities if by_request(one) and one.at >= record.measured]
    taken = [name for name in left if name is not None and name not in known]
    terminations = read_apart(taken, claims).read
    ours = {name for name, one in terminations.items() if Offset(instance=name) in one.offsets.values()}
    return [name for name in taken if name not in ours]


def _with_taken(record: UpgradeRecord, name: str) -> tuple[str, ...]:
    return (*record.taken, name)[-MOST_TAKEN:]


def is_awaited(record: UpgradeRecord, new: str, now: datetime) -> bool:
    """Return whether the launch serves its zone, or soon will: its instance has not ended, or the group may still be
    about to replace it.
    """
    ended = record.ended_early.get(new)
    return ended is None or now - ended.at < REPLACED_WITHIN


def ended_in(record: UpgradeRecord, zone: str) -> dict[str, EndedLaunch]:
    """Return the launches of this start that ended early in the zone."""
    return {new: launch for new, launch in record.ended_early.items() if launch.zone == zone}


def is_worn_out(record: UpgradeRecord, zone: str) -> bool:
    """Return whether so many launches have ended early in the zone that no more is tried while no new node is Ready
    there: the cause is not chance.
    """
    return len(ended_in(record, zone)) >= MOST_IN_A_ZONE
