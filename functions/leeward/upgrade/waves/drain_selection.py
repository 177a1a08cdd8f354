"""Selection of the old nodes that start next in a running upgrade of a self-managed group.

Decides from one observation and from the record: an old node starts when a Ready new node of its zone is not
offset yet (docs/designs/upgrade.md), beside the old nodes that are unavailable now. An empty node that settles is not
among these.

A node may drain although the nodes that replace it still boot, by the scheduling rules (`leeward.scheduling`): every
pod of such a node fits on new nodes that are Ready, beside all pods that have a place reserved there already. So no pod
waits for a node that boots, and full clusters drain one for one."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from leeward.model.pod import Pod
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.packing import pack
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.time_budget import SearchTime
from leeward.upgrade.gate import unserved_zones
from leeward.upgrade.members import Age, Member
from leeward.upgrade.preflight.model import FOR_WAVES, Preflight, in_shifted_zone, zone_of
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import TURNS_AHEAD, Strategy
from leeward.upgrade.waves.model import Limits, WaveNode
from leeward.upgrade.waves.planner import DrainOrder, next_nodes, plan_waves

LATE = timedelta(minutes=5)  # after its launch, for a new node that is not Ready
TRIES = 2  # of one node within one start


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCapacity:
    """The cluster as a scheduler sees it: all nodes, all pods that have not finished."""

    nodes: tuple[NodeSpec, ...]
    pods: tuple[PodSpec, ...]

    def fitting(
        self, new: Collection[str], leaving: Sequence[str], candidates: Sequence[str], time: SearchTime | None = None
    ) -> tuple[str, ...]:
        """Return the candidates, in their order, whose pods find a place on the nodes `new` after those that wait for
        one and those of `leaving` nodes. Empty where these do not fit themselves. `time`: for all tries; a node that it
        does not reach waits for its successor.
        """
        known = {node.name for node in self.nodes}
        # capacity on other nodes than new ones is not counted on
        nodes = [node if node.name in new else replace(node, unschedulable=True) for node in self.nodes]
        world = World(nodes, self.pods)
        world.in_time = (time or SearchTime()).in_time
        removed = (pod for name in leaving if name in known for pod in world.remove(name))
        before = [pod for pod in removed if not pod.needs.beyond_limit]  # those no plan can place
        if pack(world, before, whole=True).unplaced:
            return ()
        pack(world, world.pending)  # those of others may find no place for reasons of their own
        return tuple(name for name in candidates if name in known and _placed(world, name))


def _placed(world: World, name: str) -> bool:
    """Return whether all its pods are placed, which then stays; else the world is as it was."""
    point = world.checkpoint()
    if pack(world, world.remove(name), whole=True).unplaced:
        world.rollback(point)
        return False
    return True


def early_starts(
    preflight: Preflight,
    nodes: Sequence[WaveNode],
    leaving: Sequence[WaveNode],
    limits: Limits,
    capacity: Callable[[], PodCapacity],
) -> tuple[str, ...]:
    """Return old nodes whose successors boot, and whose pods fit until then on the new nodes that are Ready. `nodes`:
    in the order of preference; `leaving`: those that drain or are about to; `limits`: also in each zone the new
    instances that no node offsets yet.
    """
    taken = {one.name for one in leaving}
    candidates = next_nodes([one for one in nodes if one.name not in taken], leaving, limits, preflight.constraints)
    if not candidates:
        return ()
    new = [one for one in preflight.members if one.age is Age.NEW]
    if any(_is_late(preflight, one) for one in new):
        return ()
    serving = {one.node.name for one in new if one.node is not None and one.node.ready and not one.node.unschedulable}
    return capacity().fitting(serving, [one.name for one in leaving], candidates, preflight.time)


def _is_late(preflight: Preflight, new: Member) -> bool:
    """Return whether the new node should have been Ready by now: until the cause is clear, no old node starts before
    its successor is Ready.
    """
    launched = preflight.snapshot.instances.get(new.instance.id)
    if launched is None or (new.node is not None and new.node.ready):
        return False
    return preflight.snapshot.now - launched.launched > LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """An old instance that starts now, and the new one that it offsets, None where the group replaces it; `early`: it
    offsets one that is still to be launched.
    """

    old: str
    new: str | None = None
    early: bool = False


def waiting(preflight: Preflight, record: UpgradeRecord) -> tuple[Member, ...]:
    """Return old members without a termination request: one that ends for another reason is waited for. Those in a zone
    with a zonal shift stay until it is over.
    """
    return tuple(
        one
        for one in preflight.old
        if one.instance.id not in record.under_way and not one.tainted and not in_shifted_zone(preflight.snapshot, one)
    )


def to_try(preflight: Preflight, record: UpgradeRecord) -> tuple[Member, ...]:
    """Return the waiting members whose termination may be requested now: one whose drain has failed twice in this start
    waits for the next.
    """
    failures = Counter(record.failed)
    return tuple(one for one in waiting(preflight, record) if failures[one.instance.id] < TRIES)


def with_decrement(record: UpgradeRecord) -> bool:
    """Return whether each old node offsets a new one, launched ahead by name."""
    return record.strategy is not Strategy.MINIMAL and record.others_scaled is None and not record.refusal


def starts(
    preflight: Preflight,
    record: UpgradeRecord,
    *,
    at_most: int | None = None,
    seed: int = 0,
    capacity: Callable[[], PodCapacity] | None = None,
) -> tuple[Start, ...]:
    """Select the nodes whose termination is requested now, beside those that are terminating. A node that is empty and
    settles delays no other.

    `capacity`: the cluster as a scheduler sees it, read only where nodes could start before their successors are Ready.
    """
    candidates = {one.name: one for one in to_try(preflight, record)}
    busy = busy_nodes(preflight, record)
    lingering = {one.name for one in busy}  # pods of a Node that was deleted end with their own grace, not with EC2
    bare = [one for one in candidates.values() if one.node is None and one.instance.id not in lingering]
    ready = _ready_surge(preflight, record)
    limits = preflight.limits
    if with_decrement(record):
        limits = replace(limits, per_zone=_covered(preflight, record, limits, busy, ready))
    else:
        left = limits.together - _missing(preflight, record)
        at_most = max(left if at_most is None else min(left, at_most), 0)
    booting = _booting(preflight, record, ready) if capacity and with_decrement(record) else []
    early = _most_early(preflight, record) if capacity else 0
    nodes: list[WaveNode] = []
    fitting: tuple[str, ...] = ()
    most = preflight.limits if early else limits
    if with_decrement(record) and not early:
        most = replace(limits, per_zone=_covered(preflight, record, preflight.limits, busy, [*ready, *booting]))
    if _any_may_start(preflight, candidates, busy, most):
        nodes = _preferred(preflight, candidates, seed)
    chosen = next_nodes(nodes, busy, limits, preflight.constraints)
    if capacity is not None and (booting or early):
        going = [*busy, *(one for one in nodes if one.name in chosen)]
        ready = [*ready, *booting]
        limits = preflight.limits
        if not early:
            limits = replace(limits, per_zone=_covered(preflight, record, limits, going, ready))
        later = unserved_zones(preflight)  # there an old node is the last that takes pods until a new one is Ready
        fitting = early_starts(preflight, [one for one in nodes if one.zone not in later], going, limits, capacity)
        chosen += fitting
    names = [*bare, *(candidates[name] for name in chosen)]
    if at_most is not None:
        names = names[:at_most]
    return _with_offsets(preflight, record, names, ready, fitting[:early] if early else ())


def _most_early(preflight: Preflight, record: UpgradeRecord) -> int:
    """Return how many more old nodes may start before their launch is made: never more than the surge in all. None
    where the launch has to be known before the drain, nor once launches have become old.
    """
    if not with_decrement(record) or preflight.update.terminate == "first" or record.others_seen is not None:
        return 0
    return max(TURNS_AHEAD * preflight.parallel - len(record.early), 0)


def _booting(preflight: Preflight, record: UpgradeRecord, ready: Sequence[str]) -> list[str]:
    shifted = preflight.snapshot.shifted_zones
    return [new for new in record.unassigned if new not in ready and record.ahead[new].zone not in shifted]


def _any_may_start(preflight: Preflight, candidates: Collection[str], busy: Sequence[WaveNode], limits: Limits) -> bool:
    """Return whether one of them could start, in whatever order they are tried: else no plan is needed. `limits`: those
    beside every new instance that no node offsets yet.
    """
    nodes = [node for node in preflight.wave_nodes if node.name in candidates]
    next_limits = replace(limits, together=min(limits.together, len(busy) + 1))
    return bool(next_nodes(nodes, busy, next_limits, preflight.constraints))


def _preferred(preflight: Preflight, candidates: Mapping[str, Member], seed: int) -> list[WaveNode]:
    """Return the candidates wave by wave."""
    nodes = {one.name: one for one in preflight.wave_nodes if one.name in candidates}
    order = DrainOrder(preflight.policy.update.order)
    time = preflight.time.part(FOR_WAVES)
    planned = plan_waves(nodes.values(), preflight.limits, preflight.constraints, order=order, seed=seed, time=time)
    return [nodes[name] for wave in planned for name in wave]


def _ready_surge(preflight: Preflight, record: UpgradeRecord) -> list[str]:
    """Return new instances that no node offsets yet and whose node is Ready. One that is gone was replaced by its
    group: it counts when no new node is still expected. One in a zone with a zonal shift serves nothing.
    """
    shifted = preflight.snapshot.shifted_zones
    new = {one.instance.id: one for one in preflight.members}
    settled = all(one.node is not None and one.node.ready for one in new.values() if one.age is Age.NEW)
    ready = []
    for name in record.unassigned:
        member = new.get(name)
        if record.ahead[name].zone in shifted:
            continue
        if settled if member is None else (member.node is not None and member.node.ready):
            ready.append(name)
    return ready


def _covered(
    preflight: Preflight, record: UpgradeRecord, limits: Limits, busy: Sequence[WaveNode], ready: Sequence[str]
) -> dict[str, int]:
    """Limit each zone to the Ready new nodes that wait there; those of zones where no old node may start serve
    anywhere.
    """
    old = {zone_of(preflight.snapshot, one) for one in to_try(preflight, record)}
    places = Counter(record.ahead[new].zone for new in ready)
    anywhere = sum(count for zone, count in places.items() if zone not in old)
    at_work = Counter(one.zone for one in busy)
    places_by_zone = {zone: at_work[zone] + places[zone] + anywhere for zone in old}
    return {zone: min(most, limits.per_zone.get(zone, most)) for zone, most in places_by_zone.items()}


def _missing(preflight: Preflight, record: UpgradeRecord) -> int:
    """Count the members that the group has still to replace, or whose node is not Ready yet."""
    there = sum(
        one.instance.id not in record.under_way and (one.age is Age.OLD or (one.node is not None and one.node.ready))
        for one in preflight.members
    )
    return max(preflight.group.desired - preflight.serving_left_out - there, 0)


def _with_offsets(
    preflight: Preflight,
    record: UpgradeRecord,
    members: Sequence[Member],
    ready: Sequence[str],
    early: Collection[str] = (),
) -> tuple[Start, ...]:
    """Assign the new instances. Where LaunchInstances is refused the last old nodes offset them, the others are
    replaced.

    `ready`: new instances that no node offsets, those that still boot behind the others; `early`: old nodes that may
    start before theirs is launched.
    """
    if not with_decrement(record):
        left = len(waiting(preflight, record))
        free = list(record.unassigned) if record.refusal and record.others_scaled is None else []
        selected = []
        for number, one in enumerate(members):
            new = free.pop() if free and left - number <= len(free) else None
            selected.append(Start(old=one.instance.id, new=new))
        return tuple(selected)
    old = {zone_of(preflight.snapshot, one) for one in to_try(preflight, record)}
    free, selected = list(ready), []
    for one in members:
        mine = [new for new in free if record.ahead[new].zone == zone_of(preflight.snapshot, one)]
        strays = [new for new in free if record.ahead[new].zone not in old]
        if new := next(iter((*mine, *strays)), None):
            free.remove(new)
            selected.append(Start(old=one.instance.id, new=new))
        elif one.name in early:
            selected.append(Start(old=one.instance.id, early=True))
    return tuple(selected)


def busy_nodes(preflight: Preflight, record: UpgradeRecord) -> list[WaveNode]:
    """Return nodes that are unavailable until their last pod is gone: tainted or with a termination request, also of
    surplus, and old ones that are deleted, NotReady, or without the Node that a person has deleted.
    """
    snapshot = preflight.snapshot
    old = {one.instance.id for one in preflight.old}
    ids = {one.id for one in preflight.group.instances} | record.under_way.keys()
    known = {one.name: one for one in preflight.wave_nodes}
    busy = _without_a_node(preflight, old | record.under_way.keys())
    for node in snapshot.nodes:
        name = node.instance_id
        disrupted = name in record.under_way or name in snapshot.terminating or node.tainted
        if name not in ids or not (disrupted or (name in old and (node.deleting or not node.ready))):
            continue
        if any(still_there(pod) for pod in snapshot.pods_on(node.name)):
            zone = snapshot.zone_of(node)
            leaving = known.get(node.name) or WaveNode(name=node.name, zone=zone, created=node.created)
            busy.append(replace(leaving, by_others=name not in record.under_way))
    return busy


def _without_a_node(preflight: Preflight, instances: Collection[str]) -> list[WaveNode]:
    """Return instances that run and have no Node, while the cluster has pods that are bound to Nodes which do not
    exist: the garbage collector ends these pods within minutes. The instance that they run on is not known any more.
    """
    snapshot = preflight.snapshot
    nodes = {node.name for node in snapshot.nodes}
    if not any(pod.node and pod.node not in nodes and still_there(pod) for pod in snapshot.pods):
        return []
    joined = {node.instance_id for node in snapshot.nodes}
    bare = (snapshot.instances.get(name) for name in sorted(instances) if name not in joined)
    return [
        WaveNode(name=one.id, zone=one.zone, created=one.launched) for one in bare if one is not None and not one.ended
    ]


def still_there(pod: Pod) -> bool:
    """Return whether the pod has to leave and has not left, also while it stops."""
    return not (pod.mirror or pod.of_daemon_set or pod.finished)
