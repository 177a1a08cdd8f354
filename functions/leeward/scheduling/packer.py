"""One run of placing pods: the nodes it has opened and the placements, in one of two orders."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from leeward.model.counts import count_of
from leeward.model.quantity import CPU, MEMORY, total
from leeward.scheduling.fewest_nodes import Amounts, fewer_nodes
from leeward.scheduling.free_slots import FreeSlot
from leeward.scheduling.nodes import NodeTemplate
from leeward.scheduling.outcome import NO_TIME, NewNode, Packing, Unplaced, no_new_node, unavailable
from leeward.scheduling.pod_classes import Kind
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.predicates import FreePorts, Never, NodeResourcesFit, OfNode
from leeward.scheduling.world import World

# refused by these on one empty node: refused on every such node
_LASTING = (Never, OfNode, FreePorts, NodeResourcesFit)


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
        self._failed: dict[Kind, int] = {}  # at which stamp of the world

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

    def _pick(self, kind: Kind, feasible: int) -> int:
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

    def _place_for(self, kind: Kind) -> int:
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

    def _opened_for(self, kind: Kind, feasible: int) -> int:
        """Return one of the new nodes that are already present, by the rank of their slots."""
        there = (feasible & one.mask for one in self._world.free_slots.ranked)
        return next((number for mask in there if mask and (number := self._pick(kind, mask)) >= 0), -1)

    def _open_for(self, kind: Kind) -> int:
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

    def _is_never(self, kind: Kind, slot: FreeSlot) -> bool:
        """Return whether an empty node of the slot refuses the kind, with a trial where no run has tried that yet:
        the results of earlier tries must make no difference.
        """
        if kind not in slot.never:
            with self._world.trial():
                if self._refuses(kind, self._world.open(slot)):
                    slot.never.add(kind)
        return kind in slot.never

    def _refuses(self, kind: Kind, number: int) -> bool:
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
        nodes, why = self._world.fleet.nodes, dict[Kind, str]()
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

    def _why(self, kind: Kind) -> str:
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
