"""Nodes of a world, numbered, and sets of them as the bits of one whole number.

Every query for a set of nodes is answered by such a mask: `mask & other` costs next to nothing for thousands of nodes,
which is what lets one core place tens of thousands of pods a second. Nodes are only ever added; a removed node loses
its bit in `present`, so a rollback restores everything.

A draining node takes no pods, but kube-scheduler counts it as a topology domain until its Node object is deleted: it
moves from `present` to `draining`. `imagined` nodes do not exist: each stands for a zone that a group can launch
into.

Free amount of one resource on each node, arranged so that "which nodes have at least that much" is one lookup."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from leeward.scheduling.nodes import NodeSpec

EXACT_MARKS = 64  # amounts with a mask of their own; further ones share that of an amount up to a 32nd smaller
UNLIMITED = 1 << 60


class Capacity:
    """One resource. `free` by node (negative where too much was promised); `masks[i]`: nodes with `marks[i]` or more.

    The marks are the amounts that pods request, so a mask is exact for them. A change moves a node over the marks
    between its old and its new amount only.
    """

    __slots__ = ("_rank", "free", "marks", "masks")

    def __init__(self) -> None:
        self.marks: list[int] = []
        self.masks: list[int] = []
        self.free: list[int] = []
        self._rank: list[int] = []  # by node: how many marks it reaches

    def add(self, amount: int, bit: int) -> None:
        """Add the next node."""
        rank = bisect_right(self.marks, amount)
        for at in range(rank):
            self.masks[at] |= bit
        self.free.append(amount)
        self._rank.append(rank)

    def change(self, number: int, bit: int, by: int) -> None:
        """Return an amount to a node (`by` > 0) or take it."""
        free = self.free[number] = self.free[number] + by
        rank, marks = self._rank[number], self.marks
        if by < 0:
            while rank and marks[rank - 1] > free:
                rank -= 1
                self.masks[rank] ^= bit
        else:
            while rank < len(marks) and marks[rank] <= free:
                self.masks[rank] ^= bit
                rank += 1
        self._rank[number] = rank

    def mark(self, amount: int) -> bool:
        """Ensure that an amount has a mask; return whether that is its own or the one of a slightly smaller amount."""
        rounded = amount if len(self.marks) < EXACT_MARKS else _rounded(amount)
        if amount in self.marks or rounded in self.marks:
            return amount in self.marks
        at = bisect_left(self.marks, rounded)
        self.marks.insert(at, rounded)
        self.masks.insert(at, sum(1 << number for number, free in enumerate(self.free) if free >= rounded))
        self._rank = [rank + (free >= rounded) for rank, free in zip(self._rank, self.free, strict=True)]
        return rounded == amount

    def at_least(self, amount: int) -> int:
        """Return the nodes with at least that much; where the amount has no mask of its own, with slightly less."""
        at = bisect_right(self.marks, amount) - 1
        return self.masks[at] if at >= 0 else (1 << len(self.free)) - 1


def _rounded(amount: int) -> int:
    """Run down to six binary digits: 32 steps from one power of two to the next."""
    shift = max(amount.bit_length() - 6, 0)
    return amount >> shift << shift


class Fleet:
    """Nodes by number. `version` rises whenever a node is added or removed."""

    __slots__ = ("bits", "draining", "imagined", "nodes", "numbers", "present", "topologies", "version")

    def __init__(self) -> None:
        self.nodes: list[NodeSpec] = []
        self.bits: list[int] = []
        self.numbers: dict[str, int] = {}
        self.present = self.draining = self.imagined = 0
        self.version = 0
        self.topologies: dict[str, Topology] = {}

    def add(self, node: NodeSpec) -> int:
        """Return the number of a new node, which is not present yet."""
        number = len(self.nodes)
        self.nodes.append(node)
        self.bits.append(1 << number)
        self.numbers[node.name] = number
        for topology in self.topologies.values():
            topology.add(node, self.bits[number])
        return number

    def show(self, number: int) -> None:
        """Make the node present from now on."""
        self.present |= self.bits[number]
        self.version += 1

    def hide(self, number: int) -> None:
        """Make the node absent from now on; its pods are already removed."""
        self.present ^= self.bits[number]
        self.version += 1

    def drain(self, number: int) -> None:
        """Stop placing pods on the node from now on; its Node object stays. A second call undoes the first."""
        self.present ^= self.bits[number]
        self.draining ^= self.bits[number]
        self.version += 1

    def delete(self, number: int) -> None:
        """Delete the Node object of a draining node. A second call undoes the first."""
        self.draining ^= self.bits[number]
        self.version += 1

    def topology(self, key: str) -> "Topology":
        """Return the domains of one label."""
        found = self.topologies.get(key)
        if found is None:
            found = self.topologies[key] = Topology(key)
            for node, bit in zip(self.nodes, self.bits, strict=True):
                found.add(node, bit)
        return found


class Topology:
    """Domains of one label: `of` gives a node's domain (-1 without the label), `masks` the nodes of a domain."""

    __slots__ = ("domains", "key", "keyed", "masks", "of")

    def __init__(self, key: str) -> None:
        self.key = key
        self.keyed = 0
        self.of: list[int] = []
        self.masks: list[int] = []
        self.domains: dict[str, int] = {}

    def add(self, node: NodeSpec, bit: int) -> None:
        """Add the next node."""
        value = node.labels.get(self.key)
        if value is None:
            self.of.append(-1)
            return
        domain = self.domains.setdefault(value, len(self.masks))
        if domain == len(self.masks):
            self.masks.append(0)
        self.masks[domain] |= bit
        self.keyed |= bit
        self.of.append(domain)


def numbers(mask: int) -> Iterator[int]:
    """Yield the nodes of a mask, in order."""
    while mask:
        bit = mask & -mask
        yield bit.bit_length() - 1
        mask ^= bit
