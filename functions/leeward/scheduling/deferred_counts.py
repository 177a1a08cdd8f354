"""Counters that follow the pods when a rule asks them, instead of at every placement.

Each rule about other pods is a counter that the placements of these pods move, and the author of a pod chooses how many
rules it has: a few pods with 32 terms each about every pod of the cluster would make each placement move hundreds. So a
pod moves `MOST_MOVED` counters at most. The others of its counters are deferred: when a rule asks one, it visits the
nodes on which such pods came or went since it was last asked. The counts are the same in either way."""

from typing import Protocol

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
