"""Waves of old nodes that drain together.

Decides sets of node names, for a plan and for the running machine. The rules (docs/designs/upgrade.md):
* pods under one PodDisruptionBudget on the nodes of a wave are no more than it allows now;
* of a workload with several replicas at least one stays out of the wave;
* both rules are about nodes together: a node may by itself hold more than a budget allows, whose pods then leave one
  after the other;
* never more nodes than the limits allow, over all and in each zone, and with order `zone` one zone at a time;
* nodes whose drain has failed come after all others.
The order decides which node starts first; the rules decide which drain together, whatever the order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b

from leeward.upgrade.waves.constraints import NodeDemand, NumberedConstraints, Wave
from leeward.upgrade.waves.model import ClusterConstraints, Limits, WaveNode
from leeward.upgrade.waves.tabu_search import one_wave_less


class Order(StrEnum):
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
    order: Order = Order.WAVES,
    seed: int = 0,
) -> _Waves:
    """Return all waves, names in the order in which they start; put one behind the other they are an order for
    `next_nodes`.

    Limits below 1 count as 1: a plan shows what comes when they allow something again. The same nodes give the same
    waves, in whatever order they come.
    """
    least = Limits(
        together=max(limits.together, 1),
        per_zone={zone: max(most, 1) for zone, most in limits.per_zone.items()},
        one_zone=limits.one_zone or order is Order.ZONE,
    )
    ordered = in_order(nodes, least, constraints, order=order, seed=seed)
    numbered = NumberedConstraints(constraints)
    demands = numbered.of(ordered)
    waves = _first_fit(demands, least, numbered)
    return _fewer(waves, demands, least, numbered) if order is Order.WAVES else waves


def _first_fit(ordered: Sequence[NodeDemand], limits: Limits, numbered: NumberedConstraints) -> _Waves:
    remaining = list(ordered)
    waves: list[tuple[str, ...]] = []
    while remaining:
        wave = Wave(limits, numbered, ())
        _choose(wave, remaining)
        remaining = [one for one in remaining if one.node.name not in wave.started]
        waves.append(tuple(wave.started))
    return tuple(waves)


def _fewer(waves: _Waves, ordered: Sequence[NodeDemand], limits: Limits, numbered: NumberedConstraints) -> _Waves:
    """Return the same nodes in fewer waves, the largest first; nodes that cannot leave now or have failed come behind
    as they are. First fit at the end, which never needs more of them, gives the waves that the running machine walks.
    """
    if limits.one_zone:
        return waves
    by_name = {one.node.name: one for one in ordered}
    planned = [[by_name[name] for name in wave] for wave in waves]
    free = [wave for wave in planned if all(map(_drains_now, wave))]
    others = [wave for wave in planned if not all(map(_drains_now, wave))]
    while len(free) > 1 and (less := one_wave_less(free, limits, numbered)) is not None:
        free = less
    free.sort(key=len, reverse=True)
    return _first_fit([one for wave in (*free, *others) for one in wave], limits, numbered)


def _drains_now(one: NodeDemand) -> bool:
    return one.allowed and one.keeps_replica and not one.node.failed_before


def next_nodes(
    remaining: Sequence[WaveNode],
    busy: Sequence[WaveNode],
    limits: Limits,
    constraints: ClusterConstraints,
) -> tuple[str, ...]:
    """Return the remaining nodes that may start draining now, beside those that are busy.

    `remaining`: in the order of preference (`in_order`, or a plan's waves one behind the other). `busy`: nodes whose
    pods are still leaving, each with the pods that it still has; a node that is empty and settles is not busy, so no
    node waits for the end of a wave. `constraints`: as the cluster stands now. Without busy nodes this is the next wave
    of the plan.

    Nodes with pods that cannot leave now (a budget at zero, the last serving replica) wait for as long as any other
    node is being disrupted. When none is, they are tried, so that a drain finds out and reports what blocks it.
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
    """Take one node after the other, those that failed before only when there are no others."""
    fresh = any(not one.node.failed_before for one in remaining)
    for one in remaining:
        if wave.full:
            return
        left_for_last = fresh and one.node.failed_before
        if one.node.name not in wave.started and not left_for_last and wave.takes(one, blocked=blocked):
            wave.add(one)


def in_order(
    nodes: Iterable[WaveNode],
    limits: Limits,
    constraints: ClusterConstraints,
    *,
    order: Order = Order.WAVES,
    seed: int = 0,
) -> list[WaveNode]:
    """Return the nodes by preference, those that failed before last. `waves`: nodes at the scarcest budget or zone
    first (it needs the most turns), among equals zone by zone in turn and the oldest first.
    """
    by_age = sorted(nodes, key=lambda node: (node.failed_before, node.created, node.name))
    match order:
        case Order.AGE:
            return by_age
        case Order.RANDOM:
            return sorted(by_age, key=lambda node: (node.failed_before, _random_key(seed, node.name)))
        case Order.ZONE:
            turns = _turns(by_age, limits, constraints)
            return sorted(by_age, key=lambda node: (node.failed_before, node.zone, -turns[node.name]))
        case Order.WAVES:
            return _zones_in_turn(by_age, _turns(by_age, limits, constraints))


def _random_key(seed: int, name: str) -> bytes:
    """Return a random key drawn for each name by itself: the remaining nodes keep their places when
    others have gone.
    """
    return blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()


def _zones_in_turn(nodes: Sequence[WaveNode], turns: Mapping[str, int]) -> list[WaveNode]:
    seen: Counter[tuple[bool, int, str]] = Counter()
    ranks: dict[str, tuple[bool, int, int, str]] = {}
    for node in nodes:
        alike = (node.failed_before, -turns[node.name], node.zone)
        ranks[node.name] = (*alike[:2], seen[alike], node.zone)
        seen[alike] += 1
    return sorted(nodes, key=lambda node: ranks[node.name])


def _turns(nodes: Sequence[WaveNode], limits: Limits, constraints: ClusterConstraints) -> dict[str, int]:
    """Return by node how many waves the scarcest limit that it needs takes at least."""
    loads: Counter[str] = Counter()
    zones: Counter[str] = Counter()
    for node in nodes:
        loads.update(node.budgets)
        zones[node.zone] += 1
    needed = {budget: -(-load // max(constraints.allowed.get(budget, 0), 1)) for budget, load in loads.items()}
    by_zone = {zone: -(-zones[zone] // max(most, 1)) for zone, most in limits.per_zone.items()}
    return {
        node.name: max((needed[budget] for budget in node.budgets), default=0) + by_zone.get(node.zone, 0)
        for node in nodes
    }
