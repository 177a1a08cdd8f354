"""World: a simulated cluster of nodes and the pods on them, with steps that can be rolled back.

A candidate is tried in place: `checkpoint`, remove nodes, place their pods elsewhere, `rollback`. Each step is noted
and undone one by one, so that a try costs as much as it moves, not as much as the cluster holds.

Offerings in which a packing can open new nodes, and the new nodes that it has opened in a world."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from leeward.errors import ObjectGoneError
from leeward.model.quantity import CPU, MEMORY, Amounts, total
from leeward.scheduling.fleet import Fleet, numbers
from leeward.scheduling.node_sets import Admission
from leeward.scheduling.nodes import NodeSpec, NodeTemplate, TemplateOffering
from leeward.scheduling.pod_classes import ATTACHED, Kinds, PodKind, offered
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.predicates import NodeResourcesFit

TURN = 80  # steps between two looks at the clock: some 20 pods that are taken, tried, placed and rolled back
LOOKED_AT = 100  # feasible nodes: kube-scheduler, too, scores all only in clusters of up to that many nodes
_Undo = tuple[Callable[..., None], tuple[Any, ...], int]


class FreeSlot:
    """One offering of a template, in which new nodes can be opened.

    `numbers`: numbers of its nodes in the world, which later trials use again. `mask`: the same nodes as bits. `never`:
    kinds of pods that do not fit even on an empty node of it.
    """

    __slots__ = ("at", "mask", "never", "numbers", "template")

    def __init__(self, template: NodeTemplate, at: int) -> None:
        self.template, self.at = template, at
        self.numbers: list[int] = []
        self.mask = 0
        self.never: set[PodKind] = set()

    @property
    def offering(self) -> TemplateOffering:
        """Offering of the slot."""
        return self.template.offerings[self.at]

    @property
    def rank(self) -> tuple[float, str, int]:
        """Sort key, the cheapest first; the name makes the order independent of that of the templates."""
        return self.offering.price, self.template.name, self.at


class FreeSlots:
    """Free slots of one world. `ranked`: all of them by rank.

    Templates are compared by identity: callers pass the same objects each time.
    """

    __slots__ = ("_known", "ranked")

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], FreeSlot] = {}
        self.ranked: list[FreeSlot] = []

    def of(self, templates: Iterable[NodeTemplate]) -> list[FreeSlot]:
        """Return the slots of the templates, one for each offering, in their order."""
        return [self._of(template, at) for template in templates for at in range(len(template.offerings))]

    def _of(self, template: NodeTemplate, at: int) -> FreeSlot:
        slot = self._known.get((id(template), at))
        if slot is None:
            slot = self._known[id(template), at] = FreeSlot(template, at)
            self.ranked = sorted((*self.ranked, slot), key=lambda slot: slot.rank)
        return slot


class World:
    """Nodes and the pods on them. `pending`: the pods that were given without a node, in their order.

    The order in which nodes and pods are given makes no difference: nodes are numbered the most allocated first, pods
    have an order of their own. Pods on absent nodes are left out. `daemons` are the pods that DaemonSets run on every
    node that accepts them (`PodReader.daemon`): new nodes get theirs. `existing`: the nodes that were given, as a mask;
    `offered`: what they have in all. `stamp`: the same stamp, the same state. `launchable`: templates whose zones are
    topology domains with 0 pods for the pods that could run there, also while no node is there. `in_time`: whether a
    packing may go on.
    """

    def __init__(
        self,
        nodes: Iterable[NodeSpec],
        pods: Iterable[PodSpec],
        *,
        daemons: Iterable[PodSpec] = (),
        launchable: Iterable[NodeTemplate] = (),
    ) -> None:
        self.fleet = Fleet()
        self._kinds = Kinds(self.fleet)
        self._pods: list[dict[PodSpec, PodKind]] = []
        self._undo: list[_Undo] = []
        self._daemons = sorted(daemons, key=lambda pod: pod.order)
        self.stamp, self._stamps = 0, 0
        self.in_time: Callable[[], bool] = lambda: True
        self._steps = 0
        for name in (CPU, MEMORY):  # by which nodes are compared, whether a pod asks for them or not
            self._kinds.capacity(name)
        ordered = sorted(pods, key=lambda pod: pod.order)
        given = _most_allocated_first(_closed_by_pods(nodes, ordered), ordered)
        self.offered = total(node.allocatable for node in given)
        for node in given:
            self.fleet.show(self._register(node))
        for template in launchable:
            for at in range(len(template.offerings)):
                self.fleet.imagined |= self.fleet.bits[self._register(template.new_node(at, 0))]
        self.existing, self.free_slots = self.fleet.present, FreeSlots()
        for pod in ordered:
            if pod.node in self.fleet.numbers:
                self._put(pod, self._kinds.of(pod), self.fleet.numbers[pod.node])
        self.pending = [pod for pod in ordered if not pod.node and not pod.identity.leaving]

    @property
    def nodes(self) -> list[NodeSpec]:
        """Nodes that are present, new ones included."""
        return [self.fleet.nodes[number] for number in numbers(self.fleet.present)]

    def pods_on(self, node: str) -> list[PodSpec]:
        """Return the node's pods in their order. Raises ObjectGoneError."""
        return sorted(self._pods[self._number(node)], key=lambda pod: pod.order)

    def free(self, node: str) -> Amounts:
        """Return the free amount of cpu, memory and each resource that any pod requests; negative where too much is
        promised. Raises ObjectGoneError.
        """
        return self.free_at(self._number(node))

    def free_at(self, number: int) -> Amounts:
        """Return the same by the node's number: a node that was taken back may have had the same name."""
        capacities = self._kinds.capacities
        return {name: capacities[name].free[number] for name in sorted(capacities) if not name.startswith(ATTACHED)}

    def may_go_on(self) -> bool:
        """Return whether the packing under way may try another pod. The clock is read after `TURN` steps: pods that
        were tried, placed or taken, those of a rollback too.
        """
        self._steps += 1
        if self._steps < TURN:
            return True
        self._steps = 0
        return self.in_time()

    def checkpoint(self) -> int:
        """Return a point to roll back to."""
        return len(self._undo)

    def rollback(self, point: int) -> None:
        """Undo every step since the point, the last one first."""
        while len(self._undo) > point:
            step, arguments, self.stamp = self._undo.pop()
            step(*arguments)

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Roll back every step made inside the block at its end."""
        point = self.checkpoint()
        try:
            yield
        finally:
            self.rollback(point)

    def remove(self, node: str) -> list[PodSpec]:
        """Drain a node; return the pods that need another place. The node stays a topology domain until `forget`.
        Raises ObjectGoneError.
        """
        number = self._number(node)
        displaced = self.pods_on(node)
        for pod, kind in list(self._pods[number].items()):
            self._take(pod, kind, number)
            self._note(self._put, (pod, kind, number))
        self.fleet.drain(number)
        self._note(self.fleet.drain, (number,))
        return [pod for pod in displaced if not pod.stays]

    def forget(self, node: str) -> None:
        """Delete the Node object of a node that was removed. Raises ObjectGoneError."""
        number = self.fleet.numbers.get(node, -1)
        if number < 0 or not self.fleet.draining & self.fleet.bits[number]:
            raise ObjectGoneError(f"node {node} is not draining")
        self.fleet.delete(number)
        self._note(self.fleet.delete, (number,))

    def kind(self, pod: PodSpec) -> PodKind:
        """Return the kind of the pod, ready for placing it."""
        return self._kinds.prepared(self._kinds.of(pod))

    def feasible(self, kind: PodKind, among: int) -> int:
        """Return the nodes that pass all filters, as a mask; rough where the kind is (see `NodeResourcesFit`)."""
        for rule in kind.rules:
            among = rule.narrow(among)
            if not among:
                return 0
        return among

    def pick(self, kind: PodKind, feasible: int, *, emptiest: bool = False) -> int:
        """Return one of the feasible nodes that the pod's preferences leave; -1 when there is none.

        The first of them, or with `emptiest` the least allocated by now of the first `LOOKED_AT`.
        """
        while feasible:
            chosen = feasible
            for preference in kind.preferences:
                chosen = preference.narrow(chosen)
            if not emptiest and not kind.rough:
                return (chosen & -chosen).bit_length() - 1
            fitting = _fitting(chosen, kind)
            found = self._emptiest(islice(fitting, LOOKED_AT)) if emptiest else next(fitting, -1)
            if found >= 0:
                return found
            feasible ^= chosen
        return -1

    def _emptiest(self, among: Iterable[int]) -> int:
        """Return the best node by NodeResourcesFit's score LeastAllocated: the largest shares of cpu and memory left;
        then by name.
        """
        capacities = [(name, self._kinds.capacity(name).free) for name in (CPU, MEMORY)]
        nodes = self.fleet.nodes

        def rank(number: int) -> tuple[float, str]:
            offers = nodes[number].allocatable
            return -sum(free[number] / max(offers.get(n, 0), 1) for n, free in capacities), nodes[number].name

        return min(among, key=rank, default=-1)

    def put(self, pod: PodSpec, kind: PodKind, number: int) -> None:
        """Place a pod, whether it fits or not."""
        self._put(pod, kind, number)
        self._note(self._take, (pod, kind, number))

    def open(self, slot: FreeSlot) -> int:
        """Bring up a new node, with the daemon pods that will run there, whether they fit or not; return its number."""
        number = next((one for one in slot.numbers if not self.fleet.present & self.fleet.bits[one]), -1)
        if number < 0:
            number = self._register(slot.template.new_node(slot.at, len(slot.numbers) + 1))
            slot.numbers.append(number)
            slot.mask |= self.fleet.bits[number]
        self.fleet.show(number)
        self._note(self.fleet.hide, (number,))
        name, bit = self.fleet.nodes[number].name, self.fleet.bits[number]
        for daemon in self._daemons:
            kind = self.kind(daemon)
            if kind.needs.beyond_limit or kind.rules[0].narrow(bit) or _runs_on_some(kind, self.fleet.nodes[number]):
                self.put(daemon.renamed(f"{daemon.name}-{name}"), kind, number)
        return number

    def refusals(self, kind: PodKind, among: int) -> Counter[str]:
        """Return why a pod of this kind cannot run on these nodes: reason -> nodes, as kube-scheduler counts them.

        Each node is counted at the first filter that refuses it; at NodeResourcesFit once for each resource.
        """
        found: Counter[str] = Counter()
        for rule in kind.rules:
            passed = rule.narrow(among)
            if isinstance(rule, NodeResourcesFit) and rule.rough:
                passed = sum(self.fleet.bits[number] for number in numbers(passed) if rule.fits(number))
            if passed != among:
                for why, count in rule.reasons(among ^ passed):
                    found[why] += count
            among = passed
        return found

    def _register(self, node: NodeSpec) -> int:
        number = self.fleet.add(node)
        for name, capacity in self._kinds.capacities.items():
            capacity.add(offered(node.allocatable, node.attach_limits, name), self.fleet.bits[number])
        self._pods.append({})
        return number

    def _put(self, pod: PodSpec, kind: PodKind, number: int) -> None:
        self._pods[number][pod] = kind
        self._count(kind, number, 1)

    def _take(self, pod: PodSpec, kind: PodKind, number: int) -> None:
        del self._pods[number][pod]
        self._count(kind, number, -1)

    def _count(self, kind: PodKind, number: int, by: int) -> None:
        self._steps += 1
        bit, profile = self.fleet.bits[number], kind.profile
        for capacity, amount in kind.demands:
            capacity.change(number, bit, -by * amount)
        count = profile.placed[number] = profile.placed.get(number, 0) + by
        if not count:
            del profile.placed[number]
        for counter in profile.counted:
            counter.change(number, by)
        if profile.bit:
            self._kinds.deferred.change(profile.bit, number, min(count, count - by))
        for holder in kind.holds:
            holder.change(number, by)
        for port in kind.needs.ports:
            self._kinds.ports.change(port, number, by)

    def _note(self, undo: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._undo.append((undo, arguments, self.stamp))
        self._stamps += 1
        self.stamp = self._stamps

    def _number(self, node: str) -> int:
        number = self.fleet.numbers.get(node, -1)
        if number < 0 or not self.fleet.present & self.fleet.bits[number]:
            raise ObjectGoneError(f"node {node} is not there")
        return number


def _fitting(mask: int, kind: PodKind) -> Iterator[int]:
    """Yield those nodes of a mask that have the capacity, in order."""
    for number in numbers(mask):
        for free, amount in kind.rough:
            if free[number] < amount:
                break
        else:
            yield number


def _closed_by_pods(nodes: Iterable[NodeSpec], pods: Iterable[PodSpec]) -> list[NodeSpec]:
    """Close the nodes of pods whose rules about other pods are not read (`pod_limits`)."""
    closed = {pod.node for pod in pods if pod.needs.closes_node}
    why = "node(s) had a pod beyond the limits of planning"
    return [replace(node, closed=why) if node.name in closed and not node.closed else node for node in nodes]


def _most_allocated_first(nodes: Iterable[NodeSpec], pods: Iterable[PodSpec]) -> list[NodeSpec]:
    """Return the nodes by the requested share of cpu and memory in thousandths, then by name: pods then gather on the
    fullest nodes.
    """
    asked: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.node:
            asked.setdefault(pod.node, Counter()).update({name: pod.needs.asked(name) for name in (CPU, MEMORY)})

    def rank(node: NodeSpec) -> tuple[int, str]:
        used = asked.get(node.name, Counter())
        shares = (1000 * used[name] // max(node.allocatable.get(name, 0), 1) for name in (CPU, MEMORY))
        return -sum(shares), node.name

    return sorted(nodes, key=rank)


def _runs_on_some(daemon: PodKind, node: NodeSpec) -> bool:
    """Return whether the pod runs on one of the types that the node stands for, or may run there because not all labels
    of the node are known: it may take its room there.
    """
    if not node.variants and not node.open_labels:
        return False
    needs = daemon.needs
    for variant in node.variants or ((),):
        alone = replace(node, labels={**node.labels, **dict(variant)}, variants=())
        choice = needs.nodes.about(alone.labels) if node.open_labels else needs.nodes
        admitted = Admission(tolerations=needs.tolerations, nodes=choice, platform=needs.platform)
        if not admitted.refusal(alone):
            return True
    return False
