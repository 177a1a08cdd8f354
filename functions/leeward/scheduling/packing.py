"""Where pods go: onto the nodes that are there first, then onto as few new ones as first fit needs.

Pods are taken by falling priority, cpu and memory (first fit decreasing), each to the first node that passes
kube-scheduler's filters. Which of the feasible nodes is free choice: the scheduler itself would score them.
"""

from collections.abc import Iterable, Sequence

from leeward.scheduling.kinds import Kind
from leeward.scheduling.nodes import NodeTemplate
from leeward.scheduling.openings import Opening
from leeward.scheduling.outcome import NewNode, Packing, Unplaced, no_new_node, unavailable
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.rules import FreePorts, Never, OfNode, Room
from leeward.scheduling.world import World

_LASTING = (Never, OfNode, FreePorts, Room)  # whom these refuse on an empty node they refuse on every one of its kind


def attempt(
    world: World,
    remove: Iterable[str] = (),
    *,
    pods: Iterable[PodSpec] = (),
    templates: Sequence[NodeTemplate] = (),
    at_most: int | None = None,
    whole: bool = False,
) -> Packing:
    """What would become of these pods and of those on the removed nodes; the world is afterwards as it was before.

    The other arguments as for `pack`. Raises ObjectGoneError for a node that is not there.
    """
    with world.trial():
        displaced = [pod for node in sorted(remove) for pod in world.remove(node)]
        return pack(world, [*displaced, *pods], templates=templates, at_most=at_most, whole=whole)


def pack(
    world: World,
    pods: Iterable[PodSpec],
    *,
    templates: Sequence[NodeTemplate] = (),
    at_most: int | None = None,
    whole: bool = False,
) -> Packing:
    """Place the pods, for good unless the caller rolls back.

    `at_most`: new nodes, besides what each template allows. `whole`: all or nothing: give up at the first pod that can
    have no place, and name it alone. A pod that waits for others (affinity, spread) is tried again while any of these
    still finds a place.
    """
    packer = _Packer(world, templates, at_most)
    waiting, lost = packer.round(sorted(pods, key=lambda pod: pod.order), whole=whole)
    progress = bool(waiting)
    while progress and not (whole and lost):
        before = len(waiting)
        waiting, more = packer.round(waiting, whole=whole)
        lost += more
        progress = 0 < len(waiting) < before
    return packer.result(sorted((*waiting, *lost), key=lambda pod: pod.order))


class _Packer:
    """One run: what it has opened and where the pods went."""

    def __init__(self, world: World, templates: Sequence[NodeTemplate], at_most: int | None) -> None:
        self._world = world
        self._openings = world.openings.of(templates)
        self._at_most = at_most
        self._opened: dict[int, Opening] = {}  # by number, in the order of opening
        self._zones: dict[str, int] = {}
        self._templates: dict[str, int] = {}
        self._went: dict[PodSpec, int] = {}
        self._failed: dict[Kind, int] = {}  # at which stamp of the world

    def round(self, pods: Sequence[PodSpec], *, whole: bool) -> tuple[list[PodSpec], list[PodSpec]]:
        """One pass; those that may find a place yet, and those that cannot."""
        waiting: list[PodSpec] = []
        lost: list[PodSpec] = []
        for pod in pods:
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
        """The number of a node, a new one where no other will do; -1 when that will not do either."""
        world = self._world
        if self._failed.get(kind) == world.stamp:
            return -1
        feasible = world.feasible(kind, world.fleet.present)
        number = world.pick(kind, feasible & world.existing)
        if number < 0 and feasible:
            number = next((n for one in world.openings.ranked if (n := world.pick(kind, feasible & one.mask)) >= 0), -1)
        if number < 0:
            number = self._open_for(kind)
        if number < 0:
            self._failed[kind] = world.stamp
        return number

    def _open_for(self, kind: Kind) -> int:
        """The cheapest new node that will do; among equals in the zone that has got the fewest."""
        world = self._world
        for opening in self._choices():
            if kind in opening.never:
                continue
            point = world.checkpoint()
            number = world.open(opening)
            bit = world.fleet.bits[number]
            if world.pick(kind, world.feasible(kind, bit)) >= 0:
                self._note(opening, number)
                return number
            if any(isinstance(rule, _LASTING) and not rule.narrow(bit) for rule in kind.rules):
                opening.never.add(kind)
            world.rollback(point)
        return -1

    def _choices(self) -> list[Opening]:
        if self._at_most is not None and len(self._opened) >= self._at_most:
            return []
        open_ones = [one for one in self._openings if self._has_more(one.template)]
        return sorted(open_ones, key=lambda one: (one.offering.price, self._zones.get(one.offering.zone, 0), one.rank))

    def _has_more(self, template: NodeTemplate) -> bool:
        return template.most is None or self._templates.get(template.name, 0) < template.most

    def _note(self, opening: Opening, number: int) -> None:
        zone, name = opening.offering.zone, opening.template.name
        self._opened[number] = opening
        self._zones[zone] = self._zones.get(zone, 0) + 1
        self._templates[name] = self._templates.get(name, 0) + 1

    def result(self, unplaced: Sequence[PodSpec]) -> Packing:
        """Of everything so far."""
        nodes, why = self._world.fleet.nodes, dict[Kind, str]()
        pods: dict[int, list[str]] = {number: [] for number in self._opened}
        for pod, number in self._went.items():
            if number in pods:
                pods[number].append(pod.key)
        for kind in map(self._world.kind, unplaced):
            if kind not in why:
                why[kind] = self._why(kind)
        return Packing(
            placements={pod.key: nodes[number].name for pod, number in self._went.items()},
            new_nodes=tuple(_new_node(one, nodes[n].name, pods[n]) for n, one in self._opened.items()),
            unplaced=tuple(Unplaced(pod=pod.key, why=why[self._world.kind(pod)]) for pod in unplaced),
        )

    def _why(self, kind: Kind) -> str:
        world, present = self._world, self._world.fleet.present
        sentences = [unavailable(world.refusals(kind, present), present.bit_count())]
        for opening in self._choices():
            with world.trial():
                bit = world.fleet.bits[world.open(opening)]
                refusals = world.refusals(kind, bit)
            sentences.append(no_new_node(opening.template.name, opening.offering.zone, refusals))
        if self._openings and not self._choices():
            sentences.append(f"No more than {len(self._opened)} new nodes are allowed.")
        return " ".join(sentences)


def _new_node(opening: Opening, name: str, pods: Sequence[str]) -> NewNode:
    place = opening.offering
    return NewNode(name=name, template=opening.template.name, zone=place.zone, price=place.price, pods=tuple(pods))
