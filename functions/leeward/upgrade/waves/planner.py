"""Waves of old nodes that drain together.

Decides sets of node names, for a displayed plan and for a running upgrade. The rules (docs/designs/upgrade.md):
* a wave has no more pods under one PodDisruptionBudget than the budget allows now;
* at least one replica of a workload with several replicas is outside the wave;
* a single node may exceed both rules: its pods then leave one after the other;
* a wave has no more nodes than the limits allow, in total and in each zone; with order `zone`, all are in one zone;
* nodes whose drain has failed come after all others.
The order decides which node starts first; the rules decide which nodes drain together.

The number of waves is reduced by one where the smallest wave can be distributed over the others while conflicting nodes
move. What limits a wave (budgets, workloads, zones, the number of nodes) becomes numbers: each node takes of some of
them, each has a maximum. Tabu search as for graph colouring (Hertz and de Werra, "Using tabu search techniques for
graph coloring", 1987), where the excess in all waves together takes the place of conflicting edges. Its random numbers
are always the same: the same nodes give the same waves."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from itertools import takewhile

from leeward.time_budget import SearchTime
from leeward.upgrade.waves.model import ClusterConstraints, Limits, NodeDemand, NumberedConstraints, Wave, WaveNode

MOVES = 6000  # of one search, before it stops
LOOK = 64  # moves between two looks at the clock
REST = 8  # approximate number of moves for which a node does not return to a wave
Waves = Sequence[Sequence[NodeDemand]]
_Demand = tuple[tuple[int, int], ...]  # (which limit, how much of it)


class DrainOrder(StrEnum):
    """Order in which nodes start (docs/policy.md, `update.order`)."""

    WAVES = "waves"
    RANDOM = "random"
    ZONE = "zone"
    AGE = "age"


_Waves = tuple[tuple[str, ...], ...]


def plan_waves(
    nodes: Iterable[WaveNode],
    limits: Limits,
    constraints: ClusterConstraints,
    *,
    order: DrainOrder = DrainOrder.WAVES,
    seed: int = 0,
    time: SearchTime | None = None,
) -> _Waves:
    """Return all waves, each with the names of its nodes in the order in which they start.

    Concatenated, the waves are an order for `next_nodes`. Limits below 1 count as 1: the plan shows the waves that
    start once the limits allow nodes again. `seed`: of order `random`. `time`: for reducing the number of waves; the
    fewest found by then are the plan. The order of `nodes` has no influence.
    """
    positive_limits = Limits(
        together=max(limits.together, 1),
        per_zone={zone: max(limit, 1) for zone, limit in limits.per_zone.items()},
        one_zone=limits.one_zone or order is DrainOrder.ZONE,
    )
    ordered = in_order(nodes, positive_limits, constraints, order=order, seed=seed)
    numbered = NumberedConstraints(constraints)
    demands = numbered.of(ordered)
    waves = _first_fit(demands, positive_limits, numbered)
    if order is not DrainOrder.WAVES:
        return waves
    turns = _turns_needed([demand.node for demand in demands], constraints)
    return _in_fewer_waves(waves, demands, positive_limits, numbered, turns, time or SearchTime())


def _first_fit(ordered: Sequence[NodeDemand], limits: Limits, numbered: NumberedConstraints) -> _Waves:
    remaining = list(ordered)
    waves: list[tuple[str, ...]] = []
    while remaining:
        wave = Wave(limits, numbered, ())
        _choose(wave, remaining)
        remaining = [demand for demand in remaining if demand.node.name not in wave.started]
        waves.append(tuple(wave.started))
    return tuple(waves)


def _in_fewer_waves(
    waves: _Waves,
    ordered: Sequence[NodeDemand],
    limits: Limits,
    numbered: NumberedConstraints,
    turns: Mapping[str, int],
    time: SearchTime,
) -> _Waves:
    """Return the same nodes in fewer waves. The nodes of the budgets that need the most `turns` come first, wave by
    wave and in each wave: they bound how soon the last node starts, also where a wave starts in parts. Waves with nodes
    that cannot leave now or that have failed come last, unchanged.

    First fit at the end never needs more waves; it makes the plan equal to the sets that `next_nodes` returns.
    """
    if limits.one_zone:
        return waves
    by_name = {demand.node.name: demand for demand in ordered}
    planned = [[by_name[name] for name in wave] for wave in waves]
    free = [wave for wave in planned if all(map(_drains_now, wave))]
    others = [wave for wave in planned if not all(map(_drains_now, wave))]
    while len(free) > 1 and (fewer := one_wave_less(free, limits, numbered, time)) is not None:
        free = fewer

    def longest(wave: Sequence[NodeDemand]) -> list[int]:
        return sorted((turns[budget] for demand in wave for budget in demand.node.budgets), reverse=True)

    free = [sorted(wave, key=lambda demand: longest([demand]), reverse=True) for wave in free]
    free.sort(key=longest, reverse=True)
    return _first_fit([demand for wave in (*free, *others) for demand in wave], limits, numbered)


def _drains_now(demand: NodeDemand) -> bool:
    return demand.allowed and demand.keeps_replica and not demand.node.failed_before


def next_nodes(
    remaining: Sequence[WaveNode],
    busy: Sequence[WaveNode],
    limits: Limits,
    constraints: ClusterConstraints,
) -> tuple[str, ...]:
    """Return the remaining nodes that may start draining now, beside the busy nodes.

    `remaining`: nodes in the order of preference (`in_order`, or the concatenated waves of a plan). `busy`: nodes whose
    pods are still leaving, each with the pods that it still has. An empty node is not busy while it settles, so no node
    waits for the end of a wave. `constraints`: current state of the cluster. Without busy nodes the result is the next
    wave of the plan.

    Nodes with pods that cannot leave now (a budget at zero, the last serving replica) wait as long as another node is
    being disrupted. When none is, they are drained as well, so that the drain reports what blocks it.
    """
    numbered = NumberedConstraints(constraints)
    wave = Wave(limits, numbered, numbered.of(busy))
    _choose(wave, numbered.of(remaining))
    return tuple(wave.started)


def _choose(wave: Wave, remaining: Sequence[NodeDemand]) -> None:
    _fill(wave, remaining)
    if wave.empty:
        _fill(wave, remaining, blocked=True)


def _fill(wave: Wave, remaining: Sequence[NodeDemand], *, blocked: bool = False) -> None:
    """Add the nodes that fit, in their order; nodes whose drain has failed only if no others remain."""
    any_fresh = any(not demand.node.failed_before for demand in remaining)
    for demand in remaining:
        if wave.full:
            return
        deferred = any_fresh and demand.node.failed_before
        if demand.node.name not in wave.started and not deferred and wave.takes(demand, blocked=blocked):
            wave.add(demand)


def in_order(
    nodes: Iterable[WaveNode],
    limits: Limits,
    constraints: ClusterConstraints,
    *,
    order: DrainOrder = DrainOrder.WAVES,
    seed: int = 0,
) -> list[WaveNode]:
    """Return the nodes by preference; nodes whose drain has failed come last.

    `waves`: nodes of the scarcest budget and zone first, because these need the most waves; among equals the zones
    alternate, and older nodes come first. `zone`: zone by zone, in a zone those of the scarcest budget first. `age`:
    the oldest first. `random`: by `seed`.
    """
    by_age = sorted(nodes, key=lambda node: (node.failed_before, node.created, node.name))
    match order:
        case DrainOrder.AGE:
            return by_age
        case DrainOrder.RANDOM:
            return sorted(by_age, key=lambda node: (node.failed_before, _random_key(seed, node.name)))
        case DrainOrder.ZONE:
            needed = _waves_needed(by_age, limits, constraints)
            return sorted(by_age, key=lambda node: (node.failed_before, node.zone, -needed[node.name]))
        case DrainOrder.WAVES:
            return _zones_in_turn(by_age, _waves_needed(by_age, limits, constraints))


def _random_key(seed: int, name: str) -> bytes:
    """Return a random key of the name alone, so that the remaining nodes keep their order when others have left."""
    return blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()


def _zones_in_turn(nodes: Sequence[WaveNode], needed: Mapping[str, int]) -> list[WaveNode]:
    seen: Counter[tuple[bool, int, str]] = Counter()
    ranks: dict[str, tuple[bool, int, int, str]] = {}
    for node in nodes:
        urgency = (node.failed_before, -needed[node.name])
        ranks[node.name] = (*urgency, seen[*urgency, node.zone], node.zone)
        seen[*urgency, node.zone] += 1
    return sorted(nodes, key=lambda node: ranks[node.name])


def _waves_needed(nodes: Sequence[WaveNode], limits: Limits, constraints: ClusterConstraints) -> dict[str, int]:
    """Return by node name the least number of waves for the nodes that share its scarcest budget, plus those for its
    zone.
    """
    by_budget, zones = _turns_needed(nodes, constraints), Counter(node.zone for node in nodes)
    by_zone = {zone: -(-zones[zone] // max(limit, 1)) for zone, limit in limits.per_zone.items()}
    return {
        node.name: max((by_budget[budget] for budget in node.budgets), default=0) + by_zone.get(node.zone, 0)
        for node in nodes
    }


def _turns_needed(nodes: Sequence[WaveNode], constraints: ClusterConstraints) -> dict[str, int]:
    """Return by budget in how many turns its pods on the nodes leave."""
    loads: Counter[str] = Counter()
    for node in nodes:
        loads.update(node.budgets)
    return {budget: -(-load // max(constraints.allowed.get(budget, 0), 1)) for budget, load in loads.items()}


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
