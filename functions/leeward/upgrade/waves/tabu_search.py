"""Reduction of the number of waves by one: the smallest wave is distributed over the others, and conflicting nodes
move.

Decides partitions of nodes. What limits a wave (budgets, workloads, zones, the number of nodes) becomes numbers:
each node takes of some of them, each has a maximum. Tabu search as for graph colouring (Hertz and de Werra, "Using
tabu search techniques for graph coloring", 1987), where the excess in all waves together takes the place of
conflicting edges. Its random numbers are always the same: the same nodes give the same waves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from leeward.time_budget import SearchTime
from leeward.upgrade.waves.model import Limits, NodeDemand, NumberedConstraints

MOVES = 6000  # of one search, before it stops
LOOK = 64  # moves between two looks at the clock
REST = 8  # approximate number of moves for which a node does not return to a wave
Waves = Sequence[Sequence[NodeDemand]]
_Demand = tuple[tuple[int, int], ...]  # (which limit, how much of it)


def one_wave_less(
    waves: Waves, limits: Limits, numbered: NumberedConstraints, time: SearchTime
) -> list[list[NodeDemand]] | None:
    """Return the waves, one fewer; None where none was found in time, or there cannot be one. All nodes are `allowed`
    and `keeps_replica`, none has failed before, and they need not drain zone by zone (`Limits.one_zone`).
    """
    nodes = [one for wave in waves for one in wave]
    demands, most = _demands(nodes, limits, numbered)
    if len(waves) <= _least(demands, most):
        return None
    smallest = min(range(len(waves)), key=lambda number: len(waves[number]))
    search = _Search(demands, most, count=len(waves) - 1)
    homeless, number = list[int](), 0
    for place, wave in enumerate(waves):
        for _ in wave:
            if place == smallest:
                homeless.append(number)
            else:
                search.put(number, place - (place > smallest))
            number += 1
    for number in homeless:
        search.put(number, search.best_for(number))
    if not search.settle(time):
        return None
    fewer: list[list[NodeDemand]] = [[] for _ in range(len(waves) - 1)]
    for number, one in enumerate(nodes):
        fewer[search.place[number]].append(one)
    return fewer


def _demands(
    nodes: Sequence[NodeDemand], limits: Limits, numbered: NumberedConstraints
) -> tuple[list[_Demand], list[int]]:
    """Return what each node takes of each limit, and these limits; left out are those that all nodes together would
    keep.
    """
    most: list[int] = []
    numbers: dict[tuple[str, object], int] = {}

    def limit(kind: str, name: object, at_most: int) -> int:
        if (kind, name) not in numbers:
            numbers[kind, name] = len(most)
            most.append(at_most)
        return numbers[kind, name]

    demands: list[list[tuple[int, int]]] = []
    for one in nodes:
        mine = [(limit("nodes", "", limits.together), 1)]
        if one.node.zone in limits.per_zone:
            mine.append((limit("zone", one.node.zone, limits.per_zone[one.node.zone]), 1))
        mine += [(limit("budget", name, numbered.most[name]), load) for name, load in one.loads.items()]
        mine += [(limit("workload", name, numbered.serving[name] - 1), load) for name, load in one.replicas.items()]
        demands.append(mine)
    taken = _taken(demands)
    return [tuple((which, load) for which, load in mine if taken[which] > most[which]) for mine in demands], most


def _taken(demands: Iterable[Iterable[tuple[int, int]]]) -> Counter[int]:
    taken = Counter[int]()
    for mine in demands:
        for which, load in mine:
            taken[which] += load
    return taken


def _least(demands: Sequence[_Demand], most: Sequence[int]) -> int:
    """Return a lower bound of the number of waves: of each limit no wave takes more than there is, or one node does by
    itself.
    """
    taken = _taken([(which, min(load, most[which])) for which, load in mine] for mine in demands)
    return max((-(-load // most[which]) for which, load in taken.items() if load), default=1)


def _random_numbers() -> Iterator[int]:
    """Yield pseudo-random numbers (Park and Miller, "Random number generators: good ones are hard to find", 1988)."""
    number = 1
    while True:
        number = number * 48271 % 2147483647
        yield number


class _Search:
    """State of the search. `place`: the wave of each node. Of each limit in each wave it knows how much is taken, and
    by how many nodes.
    """

    def __init__(self, demands: Sequence[_Demand], most: Sequence[int], *, count: int) -> None:
        self._demands, self._most, self._count = demands, most, count
        self._load = [[0] * len(most) for _ in range(count)]
        self._by = [[0] * len(most) for _ in range(count)]
        self._takers: list[list[int]] = [[] for _ in most]
        for node, mine in enumerate(demands):
            for which, _ in mine:
                self._takers[which].append(node)
        self._over: dict[tuple[int, int], int] = {}  # (wave, limit) -> how much too much
        self.place: dict[int, int] = {}

    def put(self, node: int, wave: int) -> None:
        """Move the node into a wave, from wherever it was."""
        if node in self.place:
            self._take(node, -1)
        self.place[node] = wave
        self._take(node, 1)

    def best_for(self, node: int) -> int:
        """Return the wave in which the node conflicts least."""
        return min(range(self._count), key=lambda wave: self._more_in(wave, node))

    def settle(self, time: SearchTime) -> bool:
        """Move nodes until no limit is exceeded: of one exceeded limit, drawn at random, the node moves that conflicts
        least elsewhere. False when the search did not finish.
        """
        numbers, until = _random_numbers(), dict[tuple[int, int], int]()
        least = sum(self._over.values())
        for move in takewhile(lambda move: move % LOOK or time.more(), range(MOVES)):
            if not self._over:
                return True
            wave, which = list(self._over)[next(numbers) % len(self._over)]
            total, ways, best = sum(self._over.values()), list[tuple[int, int]](), None
            for node in self._takers[which]:
                if self.place[node] != wave:
                    continue
                gained = self._less_without(node)
                for other in range(self._count):
                    change = self._more_in(other, node) - gained
                    if other == wave or (until.get((node, other), -1) >= move and total + change >= least):
                        continue
                    if best is None or change < best:
                        best, ways = change, []
                    if change == best:
                        ways.append((node, other))
            if ways:
                node, other = ways[next(numbers) % len(ways)]
                until[node, wave] = move + REST + next(numbers) % REST
                self.put(node, other)
                least = min(least, sum(self._over.values()))
        return not self._over

    def _take(self, node: int, times: int) -> None:
        wave = self.place[node]
        load, by = self._load[wave], self._by[wave]
        for which, mine in self._demands[node]:
            by[which] += times
            load[which] += times * mine
            over = load[which] - self._most[which]
            if over > 0 and by[which] > 1:  # by itself a node may take more than there is
                self._over[wave, which] = over
            else:
                self._over.pop((wave, which), None)

    def _more_in(self, wave: int, node: int) -> int:
        load, by, most, more = self._load[wave], self._by[wave], self._most, 0
        for which, mine in self._demands[node]:
            if by[which]:
                over = load[which] + mine - most[which]
                if over > 0:
                    more += over - (max(load[which] - most[which], 0) if by[which] > 1 else 0)
        return more

    def _less_without(self, node: int) -> int:
        wave = self.place[node]
        less = 0
        for which, mine in self._demands[node]:
            over = self._over.get((wave, which))
            if over is not None:
                left = max(over - mine, 0) if self._by[wave][which] > 2 else 0
                less += over - left
        return less
