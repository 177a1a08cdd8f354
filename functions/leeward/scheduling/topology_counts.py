"""Counts of a group's pods by topology domain, kept up pod by pod and shared by all pods with the same rule.

Counters that follow the pods when a rule asks them, instead of at every placement.

Each rule about other pods is a counter that the placements of these pods move, and the author of a pod chooses how many
rules it has: a few pods with 32 terms each about every pod of the cluster would make each placement move hundreds. So a
pod moves `MOST_MOVED` counters at most. The others of its counters are deferred: when a rule asks one, it visits the
nodes on which such pods came or went since it was last asked. The counts are the same in either way."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from leeward.scheduling.fleet import Fleet, Topology
from leeward.scheduling.node_sets import NodeSet

MOST_MOVED = 8  # counters that a placement moves: pods in use are counted in one to four


class Counter(Protocol):
    """Count of pods by node or domain."""

    def change(self, number: int, by: int, /) -> None:
        """Record that pods came to a node or left it."""
        ...


class DeferredPods:
    """Pods with deferred counters, by node. Their profiles are the bits of whole numbers.

    `_levels`: for each node the profiles with at least one pod there, with at least two, and so on; `touched`: when
    such a pod last came to a node or left it, the latest last. `most_moved`: see `MOST_MOVED`.
    """

    __slots__ = ("_levels", "most_moved", "now", "profiles", "touched")

    def __init__(self) -> None:
        self.most_moved = MOST_MOVED
        self._levels: dict[int, list[int]] = {}
        self.touched: dict[int, int] = {}
        self.now = 0
        self.profiles = 0

    def room(self, moved: int, *, wide: bool) -> bool:
        """Return whether a pod that moves so many counters moves another. `wide`: no label is common to the pods that
        the counter means, so that it may mean every pod; these get half of the places.
        """
        return moved < (self.most_moved // 2 if wide else self.most_moved)

    def bit(self) -> int:
        """Return the bit of a new profile."""
        self.profiles += 1
        return 1 << (self.profiles - 1)

    def change(self, bit: int, number: int, level: int) -> None:
        """Record that a pod of the profile came to the node as its pod `level` there, from 0, or that this pod left."""
        levels = self._levels.setdefault(number, [])
        if level == len(levels):
            levels.append(0)
        levels[level] ^= bit
        self.now += 1
        self.touched.pop(number, None)
        self.touched[number] = self.now

    def count(self, number: int, profiles: int) -> int:
        """Return how many pods of the profiles are on the node."""
        count = 0
        for level in self._levels[number]:
            held = level & profiles
            if not held:
                break
            count += held.bit_count()
        return count


class Deferred:
    """Part of a counter that is behind. `profiles`: those whose pods it counts in this way."""

    __slots__ = ("_at", "_counted", "_counter", "_pods", "profiles")

    def __init__(self, counter: Counter, pods: DeferredPods) -> None:
        self._counter, self._pods = counter, pods
        self._counted: dict[int, int] = {}
        self._at = -1
        self.profiles = 0

    def catch_up(self) -> None:
        """Bring the counter up to date. Each node is visited once, however many pods came and went."""
        pods = self._pods
        if self._at == pods.now:
            return
        for number, when in reversed(pods.touched.items()):
            if when <= self._at:
                break
            now, before = pods.count(number, self.profiles), self._counted.get(number, 0)
            if now != before:
                self._counted[number] = now
                self._counter.change(number, now - before)
        self._at = pods.now


class Presence:
    """Nodes in a domain that holds a pod of the group, for (anti-)affinity."""

    __slots__ = ("_occupied", "_total", "_upto", "counts", "deferred", "topology")

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.counts: dict[int, int] = {}
        self.deferred: Deferred | None = None
        self._total = 0
        self._occupied = 0
        self._upto = len(topology.of)

    def change(self, number: int, by: int) -> None:
        """Record that pods of the group came to a node (`by` > 0) or left it; a node without the label is ignored."""
        topology = self.topology
        domain = topology.of[number]
        if domain < 0:
            return
        before = self.counts.get(domain, 0)
        after = self.counts[domain] = before + by
        self._total += by
        if not before:
            self._occupied |= topology.masks[domain]
        elif not after:
            del self.counts[domain]
            self._occupied &= ~topology.masks[domain]

    def total(self) -> int:
        """Return how many pods of the group are in any domain."""
        if self.deferred is not None:
            self.deferred.catch_up()
        return self._total

    def nodes(self) -> int:
        """Return the nodes in a domain with at least one pod; a node added to such a domain since is one too."""
        if self.deferred is not None:
            self.deferred.catch_up()
        topology = self.topology
        if self._upto != len(topology.of):
            for number in range(self._upto, len(topology.of)):
                domain = topology.of[number]
                if domain in self.counts:
                    self._occupied |= topology.masks[domain]
            self._upto = len(topology.of)
        return self._occupied


class Tally:
    """Pods by domain for one spread constraint, over the nodes that it counts (`scope`).

    `_levels`: nodes by the count of their domain, above zero; `_sizes`: how many domains have a count, zero included,
    among those with a node that is counted and exists, because only these decide the global minimum. `draining`:
    whether draining nodes count; `admitted`: the nodes that admit the pods, where launchable zones are domains too.
    """

    __slots__ = (
        "_admitted",
        "_draining",
        "_fleet",
        "_levels",
        "_scope",
        "_seen",
        "_sizes",
        "_upto",
        "_version",
        "counts",
        "deferred",
        "topology",
    )

    def __init__(
        self, fleet: Fleet, topology: Topology, scope: NodeSet, *, draining: bool, admitted: NodeSet | None
    ) -> None:
        self._fleet, self.topology, self._scope = fleet, topology, scope
        self._draining, self._admitted = draining, admitted
        self.counts: dict[int, int] = {}
        self.deferred: Deferred | None = None
        self._levels: dict[int, int] = {}
        self._sizes: dict[int, int] = {}
        self._seen = 0
        self._upto = len(topology.of)
        self._version = -1

    def start(self, placed: Iterable[Mapping[int, int]]) -> None:
        """Count the existing pods of the group, given as node -> pods."""
        if self.topology.keyed.bit_count() == len(self.topology.masks):  # a domain for each node, such as host names
            self._seen, self._version = self._counted(), self._fleet.version
            self._sizes = {0: self._seen.bit_count()} if self._seen else {}
        for pods in placed:
            for number, count in pods.items():
                self.change(number, count)

    def change(self, number: int, by: int) -> None:
        """Record that pods of the group came to a node (`by` > 0) or left it.

        The scope alone decides whether the node counts: its pods come and go while it is present, but a deferred count
        hears of that later.
        """
        if self._version != self._fleet.version:
            self._catch_up()
        if not self._scope.nodes() & self._fleet.bits[number]:
            return
        domain = self.topology.of[number]
        mask, before = self.topology.masks[domain], self.counts.get(domain, 0)
        after = before + by
        if before:
            left = self._levels.pop(before) & ~mask
            if left:
                self._levels[before] = left
        if after:
            self.counts[domain] = after
            self._levels[after] = self._levels.get(after, 0) | mask
        else:
            del self.counts[domain]
        if mask & self._seen:
            self._resize(before, -1)
            self._resize(after, 1)

    def _resize(self, count: int, by: int) -> None:
        size = self._sizes.get(count, 0) + by
        if size:
            self._sizes[count] = size
        else:
            del self._sizes[count]

    def _counted(self) -> int:
        """Return the nodes that make domains now: existing ones of the scope, and imagined ones that admit the pods."""
        fleet = self._fleet
        nodes = fleet.present | fleet.draining if self._draining else fleet.present
        if self._admitted is not None:
            nodes |= fleet.imagined & self._admitted.nodes()
        return self._scope.nodes() & nodes

    def _catch_up(self) -> None:
        """Update the domains after nodes came or went: a domain counts while one of its counted nodes is present."""
        of, masks = self.topology.of, self.topology.masks
        for number in range(self._upto, len(of)):
            count = self.counts.get(of[number], 0)
            if count:
                self._levels[count] |= self._fleet.bits[number]
        seen = self._counted()
        changed = seen ^ self._seen
        while changed:
            domain = of[(changed & -changed).bit_length() - 1]
            mask = masks[domain]
            changed &= ~mask
            there, was = bool(mask & seen), bool(mask & self._seen)
            if there != was:
                self._resize(self.counts.get(domain, 0), 1 if there else -1)
        self._seen, self._upto, self._version = seen, len(of), self._fleet.version

    def allowed(self, skew: int, own: int, min_domains: int) -> int:
        """Return the nodes where one more pod keeps the skew: count + own - minimum <= skew (PodTopologySpread's
        Filter).

        `own`: 1 when the pod is of the group itself. With fewer domains than `min_domains` the minimum is 0.
        """
        if self._version != self._fleet.version:
            self._catch_up()
        if self.deferred is not None:
            self.deferred.catch_up()
        sizes = self._sizes
        least = min(sizes) if sizes and (min_domains == 1 or sum(sizes.values()) >= min_domains) else 0
        most, full = skew - own + least, 0
        for count, nodes in self._levels.items():
            if count > most:
                full |= nodes
        return self.topology.keyed & ~full
