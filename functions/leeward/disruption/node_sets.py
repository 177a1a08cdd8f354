"""Exhaustive search over every set of a few candidates for the sets that save most."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from leeward.disruption.candidates import Candidate
from leeward.disruption.methods.proposals import Miss, Proposal, deleted, replaced
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.savings import price_of_all
from leeward.disruption.targets import Target
from leeward.policy.document import Reason


def best_sets(
    found: PlanningState, candidates: Sequence[Candidate], near: Sequence[Target], *, smallest: int = 1, most: int = 1
) -> list[Proposal]:
    """Return up to `most` sets of `smallest` nodes or more, the best first.

    Sets that could not save as much as these, and sets that contain one without capacity for its pods, are not tried.
    """
    best: list[Proposal] = []
    full: list[tuple[Target | None, list[frozenset[str]]]] = [(target, []) for target in (None, *near)]
    for nodes in _allowed(found, candidates):
        expensive, held = price_of_all(nodes) or 0.0, frozenset(one.name for one in nodes)
        for target, without_room in full:
            hopeless = len(best) >= most and expensive - (target.cheapest if target else 0.0) < best[-1].worth[0]
            if hopeless or any(one <= held for one in without_room):
                continue
            tried = replaced(found, target, nodes) if target else deleted(found, nodes)
            if tried is Miss.NO_ROOM:
                without_room.append(held)
            elif isinstance(tried, Proposal) and len(nodes) >= smallest:
                best = sorted((*best, tried), key=lambda one: one.worth, reverse=True)[:most]
    return best


def _allowed(found: PlanningState, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, ...]]:
    """Yield the sets that budgets allow, the smallest first."""
    every = (nodes for size in range(1, len(candidates) + 1) for nodes in combinations(candidates, size))
    return (nodes for nodes in every if len(affordable(found, nodes)) == len(nodes))


def affordable(found: PlanningState, ordered: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that budgets allow all together."""
    spending, taken = found.spending.copy(), list[Candidate]()
    for candidate in ordered:
        if not spending.why_not(candidate, Reason.UNDERUTILIZED):
            spending.take(candidate)
            taken.append(candidate)
    return taken
