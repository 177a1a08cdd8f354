"""Multi-node consolidation: selects nodes to remove together, with at most one cheaper node in their place.

Of a few candidates every set is tried that could save enough. For many candidates that is impossible: two searches are
made and the better result is taken: a greedy one that takes node after node as long as the pods of all still have
places, and Karpenter's binary search over prefixes of the candidates in their order (pkg/controllers/disruption/
multinodeconsolidation.go), so that the result is never worse than that.

Karpenter never replaces several nodes by a node of a type that one of them already has. Here such a set is allowed:
where one of its nodes could be removed alone, that saves as much and disturbs less, so that it is preferred."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

from leeward.budgets.usage import BudgetUsage
from leeward.disruption.candidates import Candidate
from leeward.disruption.methods.proposals import Miss, Proposal, deleted, replaced, suits, with_zones
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.removal import Removal, accepted
from leeward.disruption.savings import price_of_all, why_not_worth
from leeward.disruption.targets import Target
from leeward.policy.document import Reason
from leeward.scheduling.outcome import NewNode
from leeward.scheduling.packing import pack

FEW = 8  # candidates: of their 247 sets every one is tried
RUNNERS_UP = 16  # of these sets, for `command_sequences`
MOST_NODES = 100  # of one command, as in Karpenter
MOST_TARGETS = 8  # that the searches try, the cheapest


def several(
    found: PlanningState, ordered: Sequence[Candidate], alone: Mapping[str, Removal], targets: Sequence[Target]
) -> list[Proposal]:
    """Return sets of two nodes or more, the best first: of a few candidates the `RUNNERS_UP` best, of many at most the
    best one. `alone`: the result of removing each node by itself: a node that cannot be removed alone on free capacity
    cannot be removed so with others.
    """
    deletable = [one for one in ordered if one.name in alone and not alone[one.name].why]
    looked_at = [one for one in ordered if one.name in alone][:MOST_NODES]
    near = targets[:MOST_TARGETS]
    sets = _searched(found, looked_at, deletable, near)
    best = max((one for one in sets if isinstance(one, Proposal) and len(one.nodes) > 1), key=_worth, default=None)
    if not few(looked_at):
        return [best] if best is not None else []
    every = best_sets(found, looked_at, near, smallest=2, most=RUNNERS_UP)
    return every if best is None or (every and every[0].worth >= best.worth) else [best, *every]


def few(candidates: Sequence[Candidate]) -> bool:
    """Return whether every set of the candidates can be tried, and the commands that can follow the best."""
    return len(candidates) <= FEW


def _worth(proposal: Proposal) -> tuple[float, float, int]:
    return proposal.worth


def _searched(
    found: PlanningState, looked_at: Sequence[Candidate], deletable: Sequence[Candidate], near: Sequence[Target]
) -> Iterator[Proposal | Miss | None]:
    """Yield the results of the searches, the simplest first."""
    for order in (_calmest, _most_expensive):
        bare = _greedy(found, sorted(deletable, key=order), (), None)
        firm, mixed = bare.nodes if bare else (), sorted(looked_at, key=order)
        yield bare
        yield from (_greedy(found, mixed, firm, target) for target in near)
        yield from (_greedy(found, mixed, (), target) for target in near if firm)
    prefix = affordable(found, looked_at)
    yield _longest(prefix, partial(deleted, found))
    yield from (_longest(prefix, partial(replaced, found, target)) for target in near)


def _calmest(candidate: Candidate) -> tuple[float, int, str]:
    return candidate.rank


def _most_expensive(candidate: Candidate) -> tuple[float, tuple[float, int, str]]:
    """Sort key that puts the most expensive node first where budgets or capacity are short."""
    return -(candidate.price or 0.0), candidate.rank


def _longest(
    prefix: Sequence[Candidate], attempted: Callable[[Sequence[Candidate]], Proposal | Miss]
) -> Proposal | None:
    """Bisect the prefix' length, as if a shorter prefix were always possible where a longer one is."""
    best: Proposal | None = None
    low, high = 2, len(prefix)
    while low <= high:
        middle = (low + high) // 2
        proposal = attempted(prefix[:middle])
        if isinstance(proposal, Miss):
            high = middle - 1
        else:
            best, low = proposal, middle + 1
    return best


def _greedy(
    found: PlanningState, ordered: Iterable[Candidate], firm: Sequence[Candidate], target: Target | None
) -> Proposal | None:
    """Take node after node while all pods still have places; `firm` come first, they are known to fit together."""
    taking = _Taking(found, target)
    with found.world.trial():
        for candidate in firm:
            taking.take(candidate)
        for candidate in ordered:
            if len(taking.taken) >= MOST_NODES or not found.more():
                break
            if candidate not in taking.taken:
                taking.take(candidate)
    return taking.proposal()


class _Taking:
    """One greedy search, in a world that is rolled back afterwards."""

    def __init__(self, found: PlanningState, target: Target | None) -> None:
        self._found, self._target = found, target
        self._spending: BudgetUsage = found.spending.copy()
        if target is not None:
            self._spending.resize(target.group, 1)
        self.taken: list[Candidate] = []
        self._placements: dict[str, str] = {}
        self._new: tuple[NewNode, ...] = ()

    def take(self, candidate: Candidate) -> None:
        """Try one more node; nothing changes where it does not fit."""
        if self._spending.why_not(candidate, Reason.UNDERUTILIZED) or self._spending.why_not_smaller(candidate):
            return
        if self._target is not None and not suits(candidate, self._target):
            return
        world = self._found.world
        point = world.checkpoint()
        templates = (self._target.template,) if self._target is not None and not self._new else ()
        packing = pack(world, world.remove(candidate.name), templates=templates, at_most=1, whole=True)
        if not packing.complete:
            world.rollback(point)
            return
        self._spending.take(candidate)
        self._spending.resize(candidate.group.name, -1)
        self.taken.append(candidate)
        self._new = self._new or packing.new_nodes
        self._placements.update(packing.placements)

    def proposal(self) -> Proposal | None:
        """Return the nodes taken as a proposal, where that is allowed and worth it."""
        nodes = tuple(self.taken)
        if not self._new:
            allowed = nodes and self._found.spending.may_shrink(nodes) and not why_not_worth(nodes, 0.0)
            return Proposal(nodes=nodes, placements=self._placements) if allowed else None
        target = self._target
        price = sum(one.price for one in self._new)
        if target is None or not target.can_launch(nodes) or why_not_worth(nodes, price):
            return None
        removal = accepted(self._found, Removal(placements=self._placements, new_nodes=self._new), target)
        return None if removal.why else with_zones(self._found, nodes, target, removal)


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
