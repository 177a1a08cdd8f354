"""What comes next in a running upgrade of a self-managed group: new nodes to launch, old nodes to start.

Decides from one look and from the record. Launches come ahead of the drains, in the zones of the nodes that they
replace; an old node starts when a Ready new node of its zone is not paid for yet (docs/designs/upgrade.md)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leeward.model.pod import Pod
from leeward.upgrade.competition import WaveNode
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight import Preflight, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.sizes import Strategy, launch_now, next_increment
from leeward.upgrade.waves import Limits, Order, next_nodes, plan_waves

TRIES = 2  # of one node within one start


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An old instance whose turn has come, and the new one for which it pays, empty where the group replaces it."""

    old: str
    debt: str = ""


def waiting(preflight: Preflight, record: UpgradeRecord) -> tuple[Member, ...]:
    """Old members that nobody has told to go yet: what ends for another reason is waited for."""
    return tuple(
        one
        for one in preflight.old
        if one.instance.id not in record.under_way and not (one.node is not None and one.node.marked)
    )


def to_try(preflight: Preflight, record: UpgradeRecord) -> tuple[Member, ...]:
    """Those of them that may be told now: one whose drain has failed twice in this start waits for the next."""
    return tuple(one for one in waiting(preflight, record) if record.failed.count(one.instance.id) < TRIES)


def with_decrement(record: UpgradeRecord) -> bool:
    """Whether each old node pays for a new one, launched ahead by name."""
    return record.strategy is not Strategy.MINIMAL and record.others_scaled is None and not record.refusal


def launches(preflight: Preflight, record: UpgradeRecord) -> tuple[str, ...] | None:
    """Zones of new nodes to launch now, one entry for each; None where INCREMENTAL has come to its end in vain."""
    if not with_decrement(record):
        return ()
    old = waiting(preflight, record)
    alive = len(record.debts) + len(record.orders)
    left = len(old) + sum(bool(payer) for payer in record.debts.values())
    count: int | None = launch_now(surge_limit=record.surge, alive=alive, gone=0, old_left=left)
    if record.strategy is Strategy.INCREMENTAL and not record.cordoned:
        count = _increment(preflight, record, len(old))
    if count is None:
        return None
    lacking = Counter(zone_of(preflight.world, one) for one in old)
    lacking.subtract(record.places[new] for new in record.unassigned if new in record.places)
    lacking.subtract(order.partition("/")[0] for order in record.orders.values())
    found: list[str] = []
    for _ in range(count):
        zone = max(sorted(lacking), key=lambda name: lacking[name], default=None)
        if zone is None or lacking[zone] <= 0:
            break
        lacking[zone] -= 1
        found.append(zone)
    return tuple(found)


def _increment(preflight: Preflight, record: UpgradeRecord, old: int) -> int | None:
    """One for each zone first, then one by one while a zone is without a new node."""
    zones = {zone_of(preflight.world, one) for one in preflight.old}
    served = {zone_of(preflight.world, one) for one in preflight.members if one.age is Age.NEW}
    on_their_way = len(record.orders) + sum(new not in _ids(preflight) for new in record.debts)
    if on_their_way:
        return 0
    more = next_increment(record.ordered, len(zones), len(zones - served))
    return None if more is None else min(more, old)


def _ids(preflight: Preflight) -> set[str]:
    return {one.instance.id for one in preflight.members}


def starts(
    preflight: Preflight, record: UpgradeRecord, *, at_most: int | None = None, seed: int = 0
) -> tuple[Start, ...]:
    """Who is told to go now, beside those that are on their way. A node that is empty and settles holds nobody up."""
    candidates = {one.name: one for one in to_try(preflight, record)}
    bare = [one for one in candidates.values() if one.node is None]
    busy = busy_nodes(preflight, record)
    ready = _ready_debts(preflight, record)
    limits = preflight.limits
    if with_decrement(record):
        limits = replace(limits, per_zone=_covered(preflight, record, limits, busy, ready))
    else:
        room = limits.together - _missing(preflight, record)
        at_most = max(room if at_most is None else min(room, at_most), 0)
    chosen = _chosen(preflight, candidates, busy, limits, seed)
    names = [*bare, *(candidates[name] for name in chosen)]
    if at_most is not None:
        names = names[:at_most]
    return _with_debts(preflight, record, names, ready)


def _chosen(
    preflight: Preflight, candidates: dict[str, Member], busy: Sequence[WaveNode], limits: Limits, seed: int
) -> tuple[str, ...]:
    nodes = [one for one in preflight.wave_nodes if one.name in candidates]
    if not nodes or len(busy) >= limits.together:
        return ()
    order = Order(preflight.policy.update.order)
    by_name = {one.name: one for one in nodes}
    planned = plan_waves(nodes, preflight.limits, preflight.rivalry, order=order, seed=seed)
    return next_nodes([by_name[name] for wave in planned for name in wave], busy, limits, preflight.rivalry)


def busy_nodes(preflight: Preflight, record: UpgradeRecord) -> list[WaveNode]:
    """Old nodes that are unavailable until their last pod is gone: told to go by whomever, deleted, or NotReady."""
    world = preflight.world
    found: list[WaveNode] = []
    known = {one.name: one for one in preflight.wave_nodes}
    for member in preflight.members:
        node = member.node
        told = member.instance.id in record.under_way
        if node is None or (member.age is Age.NEW and not node.marked and not told):
            continue
        gone = told or node.marked or node.deleting or not node.ready
        if gone and any(still_there(pod) for pod in world.pods_on(node.name)):
            zone = zone_of(world, member)
            found.append(known.get(node.name) or WaveNode(name=node.name, zone=zone, created=node.created))
    return found


def still_there(pod: Pod) -> bool:
    """It has to leave and has not left, also while it stops."""
    return not (pod.mirror or pod.of_daemon_set or pod.finished)


def _ready_debts(preflight: Preflight, record: UpgradeRecord) -> list[str]:
    """New instances that nobody pays for yet and whose node is Ready. One that is gone was replaced by its group: it
    counts when no new node is still on its way.
    """
    new = {one.instance.id: one for one in preflight.members}
    settled = all(one.node is not None and one.node.ready for one in new.values() if one.age is Age.NEW)
    found = []
    for name in record.unassigned:
        member = new.get(name)
        if settled if member is None else (member.node is not None and member.node.ready):
            found.append(name)
    return found


def _covered(
    preflight: Preflight, record: UpgradeRecord, limits: Limits, busy: Sequence[WaveNode], ready: Sequence[str]
) -> dict[str, int]:
    """In each zone no more than Ready new nodes wait for there; those of zones where none may go serve anywhere."""
    old = {zone_of(preflight.world, one) for one in to_try(preflight, record)}
    places = Counter(record.places.get(new, "") for new in ready)
    anywhere = sum(count for zone, count in places.items() if zone not in old)
    at_work = Counter(one.zone for one in busy)
    found = {zone: at_work[zone] + places[zone] + anywhere for zone in old}
    return {zone: min(most, limits.per_zone.get(zone, most)) for zone, most in found.items()}


def _missing(preflight: Preflight, record: UpgradeRecord) -> int:
    """Members that the group has still to replace, or whose node is not Ready yet."""
    there = sum(
        one.instance.id not in record.under_way and (one.age is Age.OLD or (one.node is not None and one.node.ready))
        for one in preflight.members
    )
    return max(preflight.group.desired - there, 0)


def _with_debts(
    preflight: Preflight, record: UpgradeRecord, members: Sequence[Member], ready: Sequence[str]
) -> tuple[Start, ...]:
    """Who pays for what. Where LaunchInstances is refused the last old nodes pay, the others are replaced."""
    if not with_decrement(record):
        left = len(waiting(preflight, record))
        free = list(record.unassigned) if record.refusal and record.others_scaled is None else []
        found = []
        for number, one in enumerate(members):
            pays = free.pop() if free and left - number <= len(free) else ""
            found.append(Start(old=one.instance.id, debt=pays))
        return tuple(found)
    old = {zone_of(preflight.world, one) for one in to_try(preflight, record)}
    free, found = list(ready), []
    for one in members:
        mine = [new for new in free if record.places.get(new) == zone_of(preflight.world, one)]
        strays = [new for new in free if record.places.get(new) not in old]
        if pays := next(iter((*mine, *strays)), ""):
            free.remove(pays)
            found.append(Start(old=one.instance.id, debt=pays))
    return tuple(found)
