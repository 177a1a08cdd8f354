"""Filter plugins of kube-scheduler as narrowings of a set of nodes, one class each, in the scheduler's own order.

Each returns the nodes that pass, among the given ones, and the reasons of those that do not."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from leeward.model.quantity import PODS
from leeward.scheduling.fleet import Capacity, Fleet, numbers
from leeward.scheduling.node_sets import NodeSet
from leeward.scheduling.pods import ANY_ADDRESS, HostPort
from leeward.scheduling.topology_counts import Presence, Tally

Reasons = Iterator[tuple[str, int]]  # reason, and how many nodes


class Rule(Protocol):
    """One filter for one kind of pod."""

    def narrow(self, nodes: int, /) -> int:
        """Return those of the nodes that pass."""
        ...

    def reasons(self, refused: int, /) -> Reasons:
        """Yield the reasons of the nodes that did not pass."""
        ...


class Never:
    """Rule that no node passes: the pod is gated (SchedulingGates), or a claim is missing or cannot be bound
    (VolumeBinding's PreFilter).
    """

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why

    def narrow(self, _: int) -> int:
        return 0

    def reasons(self, refused: int) -> Reasons:
        yield self.why, refused.bit_count()


class OfNode:
    """Filters NodeUnschedulable, TaintToleration, NodeAffinity; or VolumeBinding and VolumeZone: of the node itself."""

    __slots__ = ("_set",)

    def __init__(self, nodes: NodeSet) -> None:
        self._set = nodes

    def narrow(self, nodes: int) -> int:
        return nodes & self._set.nodes()

    def reasons(self, refused: int) -> Reasons:
        for why, nodes in self._set.refused.items():
            if nodes & refused:
                yield why, (nodes & refused).bit_count()


class PortsInUse:
    """Host ports in use by node, for NodePorts."""

    __slots__ = ("_counts", "_fleet", "_masks")

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._masks: dict[tuple[int, str, str], int] = {}  # port, protocol and address; no address: whatever it is
        self._counts: dict[tuple[int, str, str, int], int] = {}

    def change(self, port: HostPort, number: int, by: int) -> None:
        """Record that a pod with the port came to a node (`by` 1) or left it (-1)."""
        for address in (port.address, ""):
            key = port.port, port.protocol, address
            count = self._counts.get((*key, number), 0) + by
            bit = self._fleet.bits[number]
            if count:
                self._counts[*key, number] = count
                self._masks[key] = self._masks.get(key, 0) | bit
            else:
                del self._counts[*key, number]
                self._masks[key] ^= bit

    def nodes(self, port: HostPort) -> int:
        """Return the nodes where the port clashes with one in use."""
        own, masks = (port.port, port.protocol), self._masks
        if port.address == ANY_ADDRESS:
            return masks.get((*own, ""), 0)
        return masks.get((*own, port.address), 0) | masks.get((*own, ANY_ADDRESS), 0)


class FreePorts:
    """Filter NodePorts: none of the pod's host ports is taken on the node."""

    __slots__ = ("_ports", "_used")

    def __init__(self, used: PortsInUse, ports: Sequence[HostPort]) -> None:
        self._used, self._ports = used, ports

    def narrow(self, nodes: int) -> int:
        for port in self._ports:
            nodes &= ~self._used.nodes(port)
        return nodes

    def reasons(self, refused: int) -> Reasons:
        yield "node(s) didn't have free ports for the requested pod ports", refused.bit_count()


class NodeResourcesFit:
    """Filter: the free amount of each resource covers the pod's request.

    Where an amount has no mask of its own `narrow` lets nodes through that have slightly less: `rough` are these
    amounts, each with the free amount by node.
    """

    __slots__ = ("_demands", "rough")

    def __init__(self, demands: Sequence[tuple[str, Capacity, int]]) -> None:
        self._demands = demands
        self.rough = [(capacity.free, amount) for _, capacity, amount in demands if not capacity.mark(amount)]

    def narrow(self, nodes: int) -> int:
        for _, capacity, amount in self._demands:
            nodes &= capacity.at_least(amount)
        return nodes

    def fits(self, number: int) -> bool:
        """Return whether a node that `narrow` let through has the capacity."""
        return all(free[number] >= amount for free, amount in self.rough)

    def reasons(self, refused: int) -> Reasons:
        """Yield the reasons. A node may lack several resources; each is reported, as kube-scheduler does."""
        for name, capacity, amount in self._demands:
            fitting = refused & capacity.at_least(amount)
            short = (refused ^ fitting).bit_count()
            if amount not in capacity.marks:
                short += sum(capacity.free[number] < amount for number in numbers(fitting))
            if short:
                yield "Too many pods" if name == PODS else f"Insufficient {name}", short


class NodeVolumeLimits(NodeResourcesFit):
    """Filter: the volumes that a node's CSI drivers can still attach."""

    __slots__ = ()

    def reasons(self, refused: int) -> Reasons:
        yield "node(s) exceed max volume count", refused.bit_count()


class Spread:
    """Filter PodTopologySpread for one constraint. `own`: 1 when the pod counts towards it itself."""

    __slots__ = ("_min_domains", "_own", "_skew", "_tally")

    def __init__(self, tally: Tally, *, skew: int, own: int, min_domains: int) -> None:
        self._tally, self._skew, self._own, self._min_domains = tally, skew, own, min_domains

    def narrow(self, nodes: int) -> int:
        return nodes & self._tally.allowed(self._skew, self._own, self._min_domains)

    def reasons(self, refused: int) -> Reasons:
        why = "node(s) didn't match pod topology spread constraints"
        skewed = (refused & self._tally.topology.keyed).bit_count()
        if skewed:
            yield why, skewed
        if refused.bit_count() > skewed:
            yield f"{why} (missing required label)", refused.bit_count() - skewed


class Near:
    """Filter InterPodAffinity, the pod's own affinity: each term's domain holds a pod that meets all terms.

    `itself`: the pod meets all its terms, so the first of such pods may run wherever the labels are.
    """

    __slots__ = ("_itself", "_terms")

    def __init__(self, terms: Sequence[Presence], *, itself: bool) -> None:
        self._terms, self._itself = terms, itself

    def narrow(self, nodes: int) -> int:
        first = self._itself and not any(term.total() for term in self._terms)
        for term in self._terms:
            nodes &= term.topology.keyed if first else term.nodes()
        return nodes

    def reasons(self, refused: int) -> Reasons:
        yield "node(s) didn't match pod affinity rules", refused.bit_count()


class Away:
    """Filter InterPodAffinity, the pod's own anti-affinity: no term's domain holds one of its pods."""

    __slots__ = ("_terms",)
    why = "node(s) didn't match pod anti-affinity rules"

    def __init__(self, terms: Sequence[Presence]) -> None:
        self._terms = terms

    def narrow(self, nodes: int) -> int:
        for term in self._terms:
            nodes &= ~term.nodes()
        return nodes

    def reasons(self, refused: int) -> Reasons:
        yield self.why, refused.bit_count()


class Barred(Away):
    """Filter InterPodAffinity, the symmetry: no existing pod has anti-affinity against pods like this one."""

    __slots__ = ()
    why = "node(s) didn't satisfy existing pods anti-affinity rules"


class Preference:
    """Nodes that the pod prefers: another rule, kept only while it leaves a node to run on."""

    __slots__ = ("_rule",)

    def __init__(self, rule: Rule) -> None:
        self._rule = rule

    def narrow(self, nodes: int) -> int:
        """Return the preferred nodes, or all where none is preferred: never empty when `nodes` is not."""
        return self._rule.narrow(nodes) or nodes
