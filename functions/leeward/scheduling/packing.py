"""Placement of pods: onto the existing nodes first, then onto as few new ones as first fit needs.

Every node passes kube-scheduler's filters. The choice among the feasible ones is free: pods are gathered, because that
fits the most in; where that does not fit all in, the choice of kube-scheduler itself decides.

Order of pods in which first fit needs few nodes, by their requests alone.

First fit by size takes some 5 % more nodes than the optimum, and a third more where pods have few shapes. Here a node
is filled with the pods that leave the least of what the others ask for most (the minimum bin slack heuristic of Gupta
and Ho, 1999). Above the lower bound, first fit is also repeated with the pods of the last node earlier ("squeaky
wheel"). kube-scheduler's filters are not asked: the order is a proposal, and the packer judges each placement by it.

One run of placing pods: the nodes it has opened and the placements, in one of two orders."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TypedDict, Unpack

from leeward.gc_pause import collector_paused
from leeward.model.counts import count_of
from leeward.model.quantity import CPU, MEMORY, total
from leeward.scheduling.nodes import NodeTemplate
from leeward.scheduling.outcome import NO_TIME, NewNode, Packing, Unplaced, no_new_node, unavailable
from leeward.scheduling.pod_classes import PodKind
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.predicates import FreePorts, Never, NodeResourcesFit, OfNode
from leeward.scheduling.world import FreeSlot, World

Amounts = tuple[int, ...]  # by resource, the same ones for pods and nodes

MOST_PODS = 1_000  # beyond, first fit by size has to do
TRIES = 500  # of one more pod on a node
REPEATS, STEPS = 60, 150_000  # of first fit: how often, and pods x nodes of all repeats together
LOUDER = 1.2  # factor for the size of a pod that came to the last node
# refused by these on one empty node: refused on every such node
_LASTING = (Never, OfNode, FreePorts, NodeResourcesFit)


def fewer_nodes(pods: Sequence[Amounts], node: Amounts, than: int) -> list[int] | None:
    """Return the numbers of the pods in an order in which first fit takes fewer nodes `than` that many; None where no
    such order is known.
    """
    if len(pods) > MOST_PODS or than <= (least := lower_bound(pods, node)):
        return None
    best = _filled(pods, node)
    if len(best) > least:
        best = min([best, *_repeats(pods, node, least)], key=len)
    return [number for together in best for number in together] if len(best) < than else None


def lower_bound(pods: Sequence[Amounts], node: Amounts) -> int:
    """Return the number of nodes that the sum of the requests needs at least."""
    sums = map(sum, zip(*pods, strict=True))
    return max((-(-asked // has) for asked, has in zip(sums, node, strict=True) if has), default=0)


def _filled(pods: Sequence[Amounts], node: Amounts) -> list[list[int]]:
    """Return the pods of each node, filled one node after the other."""
    numbers: dict[Amounts, list[int]] = {}
    for number, pod in enumerate(pods):
        numbers.setdefault(pod, []).append(number)
    shapes = sorted(numbers, key=lambda shape: (-_size(shape, node), shape))
    left, nodes = Counter({shape: len(numbers[shape]) for shape in shapes}), list[list[int]]()
    while shapes:
        chosen = _Filling(shapes, left, node).best
        nodes.append([numbers[shape].pop() for shape in chosen])
        left.subtract(chosen)
        shapes = [shape for shape in shapes if left[shape]]
    return nodes


class _Filling:
    """Search, depth first and the largest pods first, for the pods of one node. `best`: their shapes, with a pod of the
    largest shape.
    """

    def __init__(self, shapes: Sequence[Amounts], left: Counter[Amounts], node: Amounts) -> None:
        self._shapes, self._left, self._node = shapes, left.copy(), node
        sums = [sum(left[shape] * shape[at] for shape in shapes) for at in range(len(node))]
        # a part that is left free costs what the pods ask for of it, all of them together
        self._weights = [asked / has**3 if has else 0.0 for asked, has in zip(sums, node, strict=True)]
        self._tries, self._slack, self._chosen = TRIES, float("inf"), list[Amounts]()
        self.best: list[Amounts] = [shapes[0]]
        self._take(0, node)

    def _look(self, at: int, free: Amounts) -> None:
        """Look at the pods that are chosen, then at those with one more, of the shape `at` or a smaller one."""
        slack = sum(weight * part * part for weight, part in zip(self._weights, free, strict=True))
        if slack < self._slack:
            self._slack, self.best = slack, self._chosen.copy()
        for following in range(at, len(self._shapes)):
            if self._tries <= 0:
                return
            self._take(following, free)

    def _take(self, at: int, free: Amounts) -> None:
        self._tries -= 1
        shape = self._shapes[at]
        rest = tuple(map(int.__sub__, free, shape))
        if self._left[shape] and min(rest) >= 0:
            self._left[shape] -= 1
            self._chosen.append(shape)
            self._look(at, rest)
            self._chosen.pop()
            self._left[shape] += 1


def _repeats(pods: Sequence[Amounts], node: Amounts, least: int) -> Iterator[list[list[int]]]:
    """Yield the results of first fit, each with the pods of the last node before it moved up; none after the lower
    bound is reached.
    """
    sizes, steps = [_size(pod, node) for pod in pods], STEPS
    for _ in range(REPEATS):
        order = sorted(range(len(pods)), key=lambda number: (-sizes[number], pods[number]))
        nodes = _first_fit(order, pods, node)
        yield nodes
        steps -= len(pods) * len(nodes)
        if len(nodes) <= least or steps <= 0:
            return
        for number in nodes[-1]:
            sizes[number] *= LOUDER


def _first_fit(order: Sequence[int], pods: Sequence[Amounts], node: Amounts) -> list[list[int]]:
    free: list[Amounts] = []
    nodes: list[list[int]] = []
    for number in order:
        pod = pods[number]
        for at, has in enumerate(free):
            rest = tuple(map(int.__sub__, has, pod))
            if min(rest) >= 0:
                free[at] = rest
                nodes[at].append(number)
                break
        else:
            free.append(tuple(map(int.__sub__, node, pod)))
            nodes.append([number])
    return nodes


def _size(pod: Amounts, node: Amounts) -> float:
    """Return the sum of the shares of a node."""
    return sum(asked / has for asked, has in zip(pod, node, strict=True) if has)


class Way(Enum):
    """Order of the pods, and choice among the feasible nodes; everything else is the same for both."""

    GATHERED = "the largest share of a node first, to the node that was the most allocated"
    AS_SCHEDULED = "the oldest first, to the node that is the least allocated: kube-scheduler's queue and default score"


class Packer:
    """One run. `unplaced`: the pods without a place, in order; with `whole` only the first of them. `timed_out`: the
    world's time ended it before every pod was tried.
    """

    def __init__(self, world: World, templates: Sequence[NodeTemplate], at_most: int | None, way: Way) -> None:
        self._world, self._way = world, way
        self.unplaced: list[PodSpec] = []
        self.timed_out = False
        self._slots = world.free_slots.of(templates)
        self._at_most = at_most
        self._opened: dict[int, FreeSlot] = {}  # by number, in the order in which it opened them
        self._zones: dict[str, int] = {}
        self._templates: dict[str, int] = {}
        self._went: dict[PodSpec, int] = {}
        self._failed: dict[PodKind, int] = {}  # at which stamp of the world

    def ordered(self, pods: Sequence[PodSpec]) -> list[PodSpec]:
        """Return the pods by falling priority, and as the way says."""
        if self._way is Way.AS_SCHEDULED:
            return sorted(pods, key=lambda pod: pod.queued)
        return largest_first(pods, self._world.offered or total(one.template.node.allocatable for one in self._slots))

    def run(self, pods: Sequence[PodSpec], *, whole: bool) -> None:
        """Place the pods in this order; those that wait for others are tried again while one of these still finds a
        place.
        """
        waiting, lost = self._one_pass(pods, whole=whole)
        progress = bool(waiting)
        while progress and not self.timed_out and not (whole and lost):
            before = len(waiting)
            waiting, more = self._one_pass(waiting, whole=whole)
            lost += more
            progress = 0 < len(waiting) < before
        self.unplaced = sorted((*waiting, *lost), key=lambda pod: pod.order)

    def again(self) -> None:
        """Repeat the same placements in the world as it was before."""
        for slot in self._opened.values():
            self._world.open(slot)
        for pod, number in self._went.items():
            self._world.put(pod, self._world.kind(pod), number)

    @property
    def cost(self) -> tuple[float, int]:
        """Price of the new nodes in dollars an hour, and their number."""
        return round(sum(slot.offering.price for slot in self._opened.values()), 9), len(self._opened)

    def tighter(self) -> list[PodSpec] | None:
        """Return the placed pods in an order that may need fewer new nodes, in the world as the run left it; None where
        no such order is known. Pods on existing nodes stay first.
        """
        if len(self._opened) < 2:
            return None
        there: dict[str, dict[int, list[PodSpec]]] = {}
        for number, slot in self._opened.items():
            there.setdefault(slot.template.name, {})[number] = []
        kept, better = list[PodSpec](), False
        for pod, number in self._went.items():
            (there[self._opened[number].template.name][number] if number in self._opened else kept).append(pod)
        for by_node in there.values():
            pods = [pod for together in by_node.values() for pod in together]
            order = fewer_nodes(*self._amounts(by_node), than=len(by_node)) if len(by_node) > 1 else None
            kept += pods if order is None else [pods[at] for at in order]
            better = better or order is not None
        return kept if better else None

    def _amounts(self, by_node: Mapping[int, Sequence[PodSpec]]) -> tuple[list[Amounts], Amounts]:
        """Return what the pods of new nodes ask for, and what the smallest of these nodes has for them."""
        asked = {number: [dict(pod.needs.requests) for pod in pods] for number, pods in by_node.items()}
        names = sorted({name for pods in asked.values() for pod in pods for name in pod})
        rooms = []
        for number, pods in asked.items():
            taken, left = total(pods), self._world.free_at(number)
            rooms.append([left[name] + taken.get(name, 0) for name in names])
        amounts = [tuple(pod.get(name, 0) for name in names) for pods in asked.values() for pod in pods]
        return amounts, tuple(map(min, zip(*rooms, strict=True)))

    def might_place(self, pod: PodSpec) -> bool:
        """Return whether a pod that this run left over might find a place in another way, in the world as it was
        before.

        All filters refuse more the more pods are placed, except affinity and spread.
        """
        kind = self._world.kind(pod)
        if kind.hopeful or not all(self._is_never(kind, one) for one in self._slots):
            return True
        return self._pick(kind, self._world.feasible(kind, self._world.fleet.present)) >= 0

    def _pick(self, kind: PodKind, feasible: int) -> int:
        return self._world.pick(kind, feasible, emptiest=self._way is Way.AS_SCHEDULED)

    def _one_pass(self, pods: Sequence[PodSpec], *, whole: bool) -> tuple[list[PodSpec], list[PodSpec]]:
        """Make one pass; return the pods that may still find a place, and those that cannot."""
        waiting: list[PodSpec] = []
        lost: list[PodSpec] = []
        for at, pod in enumerate(pods):
            if not self._world.may_go_on():
                self.timed_out = True
                return (waiting, [*lost, *pods[at:]]) if not whole else ([], [pod])
            kind = self._world.kind(pod)
            number = self._place_for(kind)
            if number >= 0:
                self._world.put(pod, kind, number)
                self._went[pod] = number
            elif kind.hopeful:
                waiting.append(pod)
            elif whole:
                return [], [pod]
            else:
                lost.append(pod)
        return waiting, lost

    def _place_for(self, kind: PodKind) -> int:
        """Return the number of a node, a new one where no other is possible; -1 when a new one is not either."""
        world = self._world
        if self._failed.get(kind) == world.stamp:
            return -1
        feasible = world.feasible(kind, world.fleet.present)
        number = self._pick(kind, feasible & world.existing)
        if number < 0 and feasible:
            number = self._opened_for(kind, feasible)
        if number < 0:
            number = self._open_for(kind)
        if number < 0:
            self._failed[kind] = world.stamp
        return number

    def _opened_for(self, kind: PodKind, feasible: int) -> int:
        """Return one of the new nodes that are already present, by the rank of their slots."""
        there = (feasible & one.mask for one in self._world.free_slots.ranked)
        return next((number for mask in there if mask and (number := self._pick(kind, mask)) >= 0), -1)

    def _open_for(self, kind: PodKind) -> int:
        """Open the cheapest possible new node; among equals in the zone that has got the fewest."""
        world = self._world
        for slot in self._choices():
            if kind in slot.never:
                continue
            point = world.checkpoint()
            number = world.open(slot)
            if world.pick(kind, world.feasible(kind, world.fleet.bits[number])) >= 0:
                self._note(slot, number)
                return number
            if self._refuses(kind, number):
                slot.never.add(kind)
            world.rollback(point)
        return -1

    def _is_never(self, kind: PodKind, slot: FreeSlot) -> bool:
        """Return whether an empty node of the slot refuses the kind, with a trial where no run has tried that yet:
        the results of earlier tries must make no difference.
        """
        if kind not in slot.never:
            with self._world.trial():
                if self._refuses(kind, self._world.open(slot)):
                    slot.never.add(kind)
        return kind in slot.never

    def _refuses(self, kind: PodKind, number: int) -> bool:
        """Return whether an empty node refuses the kind for reasons that hold for every node of its template."""
        bit = self._world.fleet.bits[number]
        lasting = [rule for rule in kind.rules if isinstance(rule, _LASTING)]
        return any(
            not rule.narrow(bit) or (isinstance(rule, NodeResourcesFit) and not rule.fits(number)) for rule in lasting
        )

    def _choices(self) -> list[FreeSlot]:
        if self._at_most is not None and len(self._opened) >= self._at_most:
            return []
        open_ones = [one for one in self._slots if self._has_more(one.template)]
        return sorted(open_ones, key=lambda one: (one.offering.price, self._zones.get(one.offering.zone, 0), one.rank))

    def _has_more(self, template: NodeTemplate) -> bool:
        return template.max_nodes is None or self._templates.get(template.name, 0) < template.max_nodes

    def _note(self, slot: FreeSlot, number: int) -> None:
        zone, name = slot.offering.zone, slot.template.name
        self._opened[number] = slot
        self._zones[zone] = self._zones.get(zone, 0) + 1
        self._templates[name] = self._templates.get(name, 0) + 1

    def result(self) -> Packing:
        """Return the result of the run, in the world as it left it."""
        nodes, why = self._world.fleet.nodes, dict[PodKind, str]()
        pods: dict[int, list[str]] = {number: [] for number in self._opened}
        for pod, number in self._went.items():
            if number in pods:
                pods[number].append(pod.key)
        for kind in map(self._world.kind, self.unplaced):
            if kind not in why:
                if self.timed_out or not self._world.may_go_on():
                    break
                why[kind] = self._why(kind)
        return Packing(
            placements={pod.key: nodes[number].name for pod, number in self._went.items()},
            new_nodes=tuple(_new_node(one, nodes[n].name, pods[n]) for n, one in self._opened.items()),
            unplaced=tuple(Unplaced(pod=pod.key, why=why.get(self._world.kind(pod), NO_TIME)) for pod in self.unplaced),
            timed_out=self.timed_out,
        )

    def _why(self, kind: PodKind) -> str:
        world, present = self._world, self._world.fleet.present
        sentences = [unavailable(world.refusals(kind, present), present.bit_count())]
        for slot in self._choices():
            with world.trial():
                bit = world.fleet.bits[world.open(slot)]
                refusals = world.refusals(kind, bit)
            sentences.append(no_new_node(slot.template.name, slot.offering.zone, refusals))
        if self._slots and not self._choices():
            sentences.append(f"No more than {count_of(len(self._opened), 'new node is', 'new nodes are')} allowed.")
        return " ".join(sentences)


def largest_first(pods: Iterable[PodSpec], offered: Mapping[str, int]) -> list[PodSpec]:
    """Return the pods by falling priority and share of what nodes offer (cpu and memory added up), then by `order`."""
    of_cpu, of_memory = (1 / max(offered.get(name, 0), 1) for name in (CPU, MEMORY))
    shapes: dict[tuple[int, int, int], list[PodSpec]] = {}  # far fewer than pods
    for pod in sorted(pods, key=lambda pod: pod.order):
        shapes.setdefault(pod.order[:3], []).append(pod)

    def rank(shape: tuple[int, int, int]) -> tuple[int, float, int]:
        priority, cpu, memory = shape  # amounts are negative, as in `order`
        return priority, cpu * of_cpu + memory * of_memory, cpu

    return [pod for shape in sorted(shapes, key=rank) for pod in shapes[shape]]


def without_time(pods: Iterable[PodSpec]) -> tuple[Unplaced, ...]:
    """Return the pods as those for whose trial no time was left."""
    return tuple(Unplaced(pod=pod.key, why=NO_TIME) for pod in pods)


def _new_node(slot: FreeSlot, name: str, pods: Sequence[str]) -> NewNode:
    place = slot.offering
    return NewNode(name=name, template=slot.template.name, zone=place.zone, price=place.price, pods=tuple(pods))


class PackingLimits(TypedDict, total=False):
    """New nodes that a packing may open, and whether it has to place all pods."""

    templates: Sequence[NodeTemplate]
    at_most: int | None  # new nodes, besides the limit of each template
    whole: bool  # all or nothing: stop at the first pod that can have no place, and name only that one


def attempt(
    world: World,
    remove: Iterable[str] = (),
    *,
    pods: Iterable[PodSpec] = (),
    deleted: bool = False,
    **limits: Unpack[PackingLimits],
) -> Packing:
    """Return the placements of these pods and of those on the removed nodes; afterwards the world is as it was before.

    The removed nodes drain: they stay topology domains, so that pods which are placed can start during the drain.
    `deleted`: their Node objects are already gone.

    Raises ObjectGoneError for a node that is not present.
    """
    with world.trial():
        names = sorted(remove)
        displaced = [pod for node in names for pod in world.remove(node)]
        for node in names if deleted else ():
            world.forget(node)
        return pack(world, [*displaced, *pods], **limits)


@collector_paused()  # among 100,000 pods it takes half of the time, and finds nothing
def pack(world: World, pods: Iterable[PodSpec], **limits: Unpack[PackingLimits]) -> Packing:
    """Place the pods, permanently unless the caller rolls back.

    Where a packing opens more new nodes than the pods' requests need, another order is tried (`fewer_nodes`). Where
    pods are left over that might find a place, kube-scheduler's own order is tried instead (`Way`): it then decides
    which pods these are, or finds a place for all. Where the world's time ends (`World.in_time`), the pods placed until
    then keep their places; of a whole packing none is placed.
    """
    templates, at_most = limits.get("templates", ()), limits.get("at_most")
    whole = limits.get("whole", False)
    pods, point = list(pods), world.checkpoint()
    gathered = Packer(world, templates, at_most, Way.GATHERED)
    gathered.run(gathered.ordered(pods), whole=whole)
    if not gathered.unplaced:
        return _on_fewer_nodes(gathered, Packer(world, templates, at_most, Way.GATHERED), world, point).result()
    if gathered.timed_out and not whole:
        return gathered.result()
    world.rollback(point)
    if gathered.timed_out:
        return Packing(placements={}, unplaced=without_time(gathered.unplaced), timed_out=True)
    if (all if whole else any)(gathered.might_place(pod) for pod in gathered.unplaced):
        scheduled = Packer(world, templates, at_most, Way.AS_SCHEDULED)
        scheduled.run(scheduled.ordered(pods), whole=whole)
        if not (whole and scheduled.unplaced) and not scheduled.timed_out:
            return scheduled.result()
        world.rollback(point)
    gathered.again()
    return gathered.result()


def _on_fewer_nodes(first: Packer, second: Packer, world: World, point: int) -> Packer:
    """Run the second packer in a tighter order where the first has opened more nodes than its pods' requests need;
    return the cheaper of the two, with its placements in the world.
    """
    order = first.tighter()
    if order is None:
        return first
    world.rollback(point)
    second.run(order, whole=True)
    if not second.unplaced and second.cost < first.cost:
        return second
    world.rollback(point)
    first.again()
    return first
