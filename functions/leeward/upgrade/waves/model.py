"""Model of the wave planner: pods that have to leave a node, the budgets and workloads for which nodes compete, limits.

Joins nodes, pods, budgets and workloads once, so that the wave planner only adds and compares.

Constraints say what nodes take of each limit, and whether one more fits. The names of budgets and workloads become bits
of a number, so that most questions are one comparison: a plan of 500 nodes needs some hundred thousand."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from leeward.budgets.pdb import PdbIndex
from leeward.model.pod import DRAIN_TAINTS, Pod, PodDisruptionBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveNode:
    """An old node."""

    name: str
    zone: str
    created: datetime
    failed_before: bool = False  # its drain has failed in this upgrade
    by_others: bool = False  # what ends it is not this upgrade: it takes a place and decides no zone
    budgets: Mapping[str, int] = field(default_factory=dict)  # pods under each PodDisruptionBudget, `namespace/name`
    workloads: Mapping[str, int] = field(default_factory=dict)  # replicas of each workload, `namespace/Kind/name`


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConstraints:
    """Constraints for which the nodes compete."""

    allowed: Mapping[str, int] = field(default_factory=dict)  # disruptions that each budget allows now
    # pods of each workload that has more than one, on whatever node
    replicas: Mapping[str, int] = field(default_factory=dict)
    serving: Mapping[str, int] = field(default_factory=dict)  # those of them that serve now


def workload_of(pod: Pod) -> str | None:
    """Return the controller, as `namespace/Kind/name`; None for a pod without one."""
    return f"{pod.namespace}/{pod.owner.kind}/{pod.owner.name}" if pod.owner is not None else None


def tolerates_drain_taints(pod: Pod) -> bool:
    """Return whether kube-scheduler would put the pod back on a cordoned node with Leeward's taint (NodeUnschedulable,
    TaintToleration).
    """
    return all(pod.tolerates(key, "", "NoSchedule") for key in DRAIN_TAINTS)


def has_to_leave(pod: Pod) -> bool:
    """Return whether the pod is neither static, nor a DaemonSet's, nor finished, nor terminating already."""
    return pod.evictable


def wave_node(
    name: str,
    zone: str,
    created: datetime,
    pods: Iterable[Pod],
    index: PdbIndex,
    *,
    failed_before: bool = False,
) -> WaveNode:
    """Return the node with what its pods take of each budget and workload."""
    budgets: Counter[str] = Counter()
    workloads: Counter[str] = Counter()
    for pod in pods:
        if has_to_leave(pod):
            budgets.update(budget.key for budget in index.selecting(pod))
            workload = workload_of(pod)
            if workload is not None:
                workloads[workload] += 1
    return WaveNode(
        name=name, zone=zone, created=created, failed_before=failed_before, budgets=budgets, workloads=workloads
    )


def cluster_constraints(
    budgets: Iterable[PodDisruptionBudget], pods: Sequence[Pod], *, only_ready: bool = False
) -> ClusterConstraints:
    """Return the constraints of the whole cluster. `only_ready`: in a running upgrade only replicas that are Ready
    serve; a plan takes all.
    """
    sizes: Counter[str] = Counter()
    serving: Counter[str] = Counter()
    for pod in pods:
        workload = workload_of(pod)
        if workload is not None and not (pod.finished or pod.deletion):
            sizes[workload] += 1
            serving[workload] += not only_ready or pod.ready
    return ClusterConstraints(
        allowed={budget.key: max(budget.disruptions_allowed, 0) for budget in budgets},
        replicas={workload: size for workload, size in sizes.items() if size > 1},
        serving={workload: serving[workload] for workload, size in sizes.items() if size > 1},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on nodes that may be disrupted at once."""

    together: int
    per_zone: Mapping[str, int] = field(default_factory=dict)  # of zones with a budget of their own
    one_zone: bool = False  # all that the upgrade ends in the same zone


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDemand:
    """A node, and what its pods take."""

    node: WaveNode
    loads: Mapping[int, int]  # of budgets, each by its number
    replicas: Mapping[int, int]  # of workloads with several, each by its number
    budgets: int  # bits of those budgets
    workloads: int  # bits of those workloads
    uses_up: int  # bits of the budgets that it leaves nothing of
    spends: int  # bits of the workloads that it leaves nothing of
    allowed: bool  # with no other node disrupted every budget allows something
    keeps_replica: bool  # and a replica of each workload serves on


class NumberedConstraints:
    """Constraints for which nodes compete (`ClusterConstraints`), by number: `most` pods may leave at once under a
    budget, and of a workload that has several `replicas`, `serving` serve.
    """

    def __init__(self, constraints: ClusterConstraints) -> None:
        self._budgets = {name: number for number, name in enumerate(constraints.allowed)}
        self._workloads = {name: number for number, name in enumerate(constraints.replicas)}
        self.most = list(constraints.allowed.values())
        self.replicas = list(constraints.replicas.values())
        self.serving = [constraints.serving.get(name, 0) for name in constraints.replicas]

    def of(self, nodes: Iterable[WaveNode]) -> list[NodeDemand]:
        """Return the demands of the nodes, in the same order."""
        return [self._demand(node) for node in nodes]

    def _demand(self, node: WaveNode) -> NodeDemand:
        loads = {self._budget(name): load for name, load in node.budgets.items()}
        known = self._workloads
        replicas = {known[name]: load for name, load in node.workloads.items() if name in known}
        return NodeDemand(
            node=node,
            loads=loads,
            replicas=replicas,
            budgets=_bits(loads),
            workloads=_bits(replicas),
            uses_up=_bits(number for number, load in loads.items() if load >= self.most[number]),
            spends=_bits(number for number, load in replicas.items() if load + 1 >= self.serving[number]),
            allowed=all(load <= self.most[number] or self.most[number] > 0 for number, load in loads.items()),
            keeps_replica=all(load < self.serving[one] or load >= self.replicas[one] for one, load in replicas.items()),
        )

    def _budget(self, name: str) -> int:
        """Return the number of the budget. An unknown one allows nothing."""
        number = self._budgets.setdefault(name, len(self.most))
        if number == len(self.most):
            self.most.append(0)
        return number


class Wave:
    """Nodes that are being disrupted. `started`: those added to the nodes that were `busy` before."""

    def __init__(self, limits: Limits, numbered: NumberedConstraints, busy: Sequence[NodeDemand]) -> None:
        self._limits, self._numbered = limits, numbered
        self._count = 0
        self._zone: str | None = None
        self._zones: Counter[str] = Counter()
        self._loads: dict[int, int] = {}  # pods, by the number of their budget
        self._replicas: dict[int, int] = {}  # the same by that of their workload
        self._used_up = self._under = 0  # bits of budgets that allow nothing more, and of those with a pod that leaves
        self._spent = self._shared = 0  # of workloads of which no more pods may leave, and of those of which any does
        self.started: dict[str, None] = {}
        for one in busy:
            self._take(one)

    @property
    def empty(self) -> bool:
        """True if no node is being disrupted."""
        return self._count == 0

    @property
    def full(self) -> bool:
        """True if no further node fits, whichever it is."""
        return self._count >= self._limits.together

    def takes(self, one: NodeDemand, *, blocked: bool = False) -> bool:
        """Return whether the node fits beside those that are being disrupted; `blocked`: also one whose pods cannot
        leave now. The cheapest question comes first.
        """
        if one.budgets & self._used_up:
            return False
        if one.workloads & self._spent or not self._zone_is_open(one.node.zone):
            return False
        if not blocked and not (one.allowed and one.keeps_replica):
            return False
        return self._allows(one) and self._keeps_one(one)

    def add(self, one: NodeDemand) -> None:
        """Add the node to the wave."""
        self.started[one.node.name] = None
        self._take(one)

    def _take(self, one: NodeDemand) -> None:
        self._count += 1
        self._zone = self._zone if one.node.by_others else one.node.zone
        self._zones[one.node.zone] += 1
        loads, replicas, numbered = self._loads, self._replicas, self._numbered
        more = _added(loads, one.loads, one.budgets & self._under)
        self._used_up |= one.uses_up | _bits(number for number in more if loads[number] >= numbered.most[number])
        more = _added(replicas, one.replicas, one.workloads & self._shared)
        spent = (number for number in more if replicas[number] + 1 >= numbered.serving[number])
        self._spent |= one.spends | _bits(spent)
        self._under |= one.budgets
        self._shared |= one.workloads

    def _zone_is_open(self, zone: str) -> bool:
        if self._limits.one_zone and self._zone not in {None, zone}:
            return False
        most = self._limits.per_zone.get(zone)
        return most is None or self._zones[zone] < most

    def _allows(self, one: NodeDemand) -> bool:
        """Return whether budgets allow the node together with what is taken. By itself a node may hold more than a
        budget allows, if that is anything at all (`NodeDemand.allowed`).
        """
        taken, most = self._loads, self._numbered.most
        return all(taken[number] + one.loads[number] <= most[number] for number in _each(one.budgets & self._under))

    def _keeps_one(self, one: NodeDemand) -> bool:
        """Return whether one replica serves outside the wave; where all of them are on one node, that is impossible
        (`NodeDemand.keeps_replica`).
        """
        taken, serving = self._replicas, self._numbered.serving
        shared = _each(one.workloads & self._shared)
        return all(taken[number] + one.replicas[number] < serving[number] for number in shared)


def _added(taken: dict[int, int], loads: Mapping[int, int], known: int) -> list[int]:
    """Add the loads and return the numbers of `known` bits, of which something was taken before. Most are new, and put
    in at once.
    """
    before = {number: taken[number] for number in _each(known)}
    taken.update(loads)
    for number, load in before.items():
        taken[number] += load
    return list(before)


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _each(bits: int) -> Iterator[int]:
    """Yield the numbers, one by one."""
    while bits:
        number = bits.bit_length() - 1
        yield number
        bits ^= 1 << number
