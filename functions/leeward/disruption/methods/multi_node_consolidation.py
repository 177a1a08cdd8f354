"""Multi-node consolidation: selects nodes to remove together, with at most one cheaper node in their place.

A proposal removes one set of nodes as a whole: on free capacity alone, or with one cheaper node of a group.

Of a few candidates every set is tried that could save enough. For many candidates that is impossible: two searches are
made and the better result is taken: a greedy one that takes node after node as long as the pods of all still have
places, and Karpenter's binary search over prefixes of the candidates in their order (pkg/controllers/disruption/
multinodeconsolidation.go), so that the result is never worse than that.

Karpenter never replaces several nodes by a node of a type that one of them already has. Here such a set is allowed:
where one of its nodes could be removed alone, that saves as much and disturbs less, so that it is preferred."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import combinations

from leeward.budgets.usage import BudgetUsage
from leeward.disruption.candidates import Candidate
from leeward.disruption.planning_state import PlanningState, TrialRemoval, in_zone, on_free_capacity, with_new_nodes
from leeward.disruption.savings import price_of_all, reason_not_worth, saved
from leeward.disruption.targets import LaunchTarget, why_failed_before, why_no_spot
from leeward.policy.document import DisruptionReason
from leeward.scheduling.outcome import NO_TIME, NewNode
from leeward.scheduling.packing import pack

MOST_EXHAUSTIVE = 8  # candidates: of their 247 sets every one is tried
RUNNERS_UP = 16  # the next best sets, for `command_sequences`
MOST_NODES = 100  # of one command, as in Karpenter
MOST_TARGETS = 8  # that the searches try, the cheapest


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Nodes that can be removed. `target` None: nothing has to be launched; `price`: that of the new node in the most
    expensive of `zones`. `spare`: these nodes could be removed without it, the nodes of later commands could not.
    """

    nodes: tuple[Candidate, ...]
    placements: Mapping[str, str] = field(default_factory=dict)
    target: LaunchTarget | None = None
    zones: tuple[str, ...] = ()
    price: float = 0.0
    spare: bool = False

    @property
    def worth(self) -> tuple[float, float, int]:
        """Sort key: the most saved, then the least disturbed, then the fewest nodes."""
        return saved(self.nodes, self.price) or 0.0, -sum(one.cost for one in self.nodes), -len(self.nodes)


class Miss(Enum):
    """Reason why a set yields no proposal. Where capacity is lacking, sets that contain this one have none either."""

    NOT_NOW = "time, sizes, rules of price, or too little saved"
    NO_CAPACITY = "a pod has no other place"


def delete_proposal(state: PlanningState, nodes: Sequence[Candidate]) -> Proposal | Miss:
    """Try the set on free capacity alone."""
    if not state.more() or not state.usage.may_shrink(nodes) or reason_not_worth(nodes, 0.0):
        return Miss.NOT_NOW
    removal = on_free_capacity(state, nodes)
    if removal.why:
        return _miss(removal)
    return Proposal(nodes=tuple(nodes), placements=removal.placements)


def replace_proposal(state: PlanningState, target: LaunchTarget, nodes: Sequence[Candidate]) -> Proposal | Miss:
    """Try the set with one new node of the target, which has to be needed."""
    if not state.more() or not _is_allowed(state, nodes, target) or reason_not_worth(nodes, target.cheapest):
        return Miss.NOT_NOW
    removal = with_new_nodes(state, nodes, target)
    if removal.why:
        return _miss(removal)
    if not removal.new_nodes or reason_not_worth(nodes, removal.price):
        return Miss.NOT_NOW
    return with_zones(state, nodes, target, removal)


def _miss(removal: TrialRemoval) -> Miss:
    return Miss.NOT_NOW if removal.why == NO_TIME else Miss.NO_CAPACITY


def with_spare(state: PlanningState, deletion: Proposal, target: LaunchTarget) -> Proposal | None:
    """Return a deletion, with a new node of the target for later commands; None where that is not worth it."""
    offerings = target.template.offerings
    price = max((one.price for one in offerings), default=0.0)
    if not offerings or not _is_allowed(state, deletion.nodes, target) or reason_not_worth(deletion.nodes, price):
        return None
    zones = tuple(one.zone for one in offerings)
    return replace(deletion, target=target, zones=zones, price=price, spare=True)


def _is_allowed(state: PlanningState, nodes: Sequence[Candidate], target: LaunchTarget) -> bool:
    """Return whether sizes and rules of price allow the replacement, whatever the pods need."""
    fair = all(suits(one, target) for one in nodes) and not why_failed_before(state.snapshot, nodes, target.group)
    return fair and target.can_launch(nodes) and state.usage.may_shrink(nodes, grows=target.group)


def suits(candidate: Candidate, target: LaunchTarget) -> bool:
    """Return whether the rules of price let a node of the target take the candidate's place."""
    return candidate.price is not None and not why_no_spot(candidate, target)


def with_zones(
    state: PlanningState, nodes: Sequence[Candidate], target: LaunchTarget, removal: TrialRemoval
) -> Proposal:
    """Return the proposal with every zone in which the new node would be possible and still worth it: the price is that
    of the most expensive of these.
    """
    chosen = removal.new_nodes[0].zone
    prices = {one.zone: one.price for one in target.template.offerings}
    zones = tuple(
        zone
        for zone, price in prices.items()
        if zone == chosen or (not reason_not_worth(nodes, price) and not in_zone(state, nodes, target, zone).why)
    )
    price = max(prices[zone] for zone in zones)
    return Proposal(nodes=tuple(nodes), placements=removal.placements, target=target, zones=zones, price=price)


def multi_node_proposals(
    state: PlanningState,
    ordered: Sequence[Candidate],
    removals: Mapping[str, TrialRemoval],
    targets: Sequence[LaunchTarget],
) -> list[Proposal]:
    """Return sets of two nodes or more, the best first: of a few candidates the `RUNNERS_UP` best, of many at most the
    best one. `removals`: the result of removing each node by itself: a node that free capacity alone does not replace
    cannot be removed so with others.
    """
    deletable = [one for one in ordered if one.name in removals and not removals[one.name].why]
    considered_nodes = [one for one in ordered if one.name in removals][:MOST_NODES]
    cheapest = targets[:MOST_TARGETS]
    sets = _searches(state, considered_nodes, deletable, cheapest)
    several = (proposal for proposal in sets if isinstance(proposal, Proposal) and len(proposal.nodes) > 1)
    best = max(several, key=lambda proposal: proposal.worth, default=None)
    if not is_exhaustive(considered_nodes):
        return [best] if best is not None else []
    every = best_sets(state, considered_nodes, cheapest, smallest=2, most=RUNNERS_UP)
    return every if best is None or (every and every[0].worth >= best.worth) else [best, *every]


def is_exhaustive(candidates: Sequence[Candidate]) -> bool:
    """Return whether every set of the candidates can be tried, and the commands that can follow the best."""
    return len(candidates) <= MOST_EXHAUSTIVE


def _searches(
    state: PlanningState,
    considered_nodes: Sequence[Candidate],
    deletable: Sequence[Candidate],
    cheapest: Sequence[LaunchTarget],
) -> Iterator[Proposal | Miss | None]:
    """Yield the results of the searches, the simplest first."""
    for order in (_cheapest_to_disrupt, _most_expensive):
        deletion = _greedy(state, sorted(deletable, key=order), (), None)
        firm, mixed = deletion.nodes if deletion else (), sorted(considered_nodes, key=order)
        yield deletion
        yield from (_greedy(state, mixed, firm, target) for target in cheapest)
        yield from (_greedy(state, mixed, (), target) for target in cheapest if firm)
    prefix = affordable(state, considered_nodes)
    yield _longest(prefix, partial(delete_proposal, state))
    yield from (_longest(prefix, partial(replace_proposal, state, target)) for target in cheapest)


def _cheapest_to_disrupt(candidate: Candidate) -> tuple[float, int, str]:
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
    state: PlanningState, ordered: Iterable[Candidate], firm: Sequence[Candidate], target: LaunchTarget | None
) -> Proposal | None:
    """Take node after node while all pods still have places; `firm` come first, they are known to fit together."""
    search = _GreedySearch(state, target)
    with state.world.trial():
        for candidate in firm:
            search.take(candidate)
        for candidate in ordered:
            if len(search.taken) >= MOST_NODES or not state.more():
                break
            if candidate not in search.taken:
                search.take(candidate)
    return search.proposal()


class _GreedySearch:
    """One greedy search, in a world that is rolled back afterwards. `taken`: the nodes so far."""

    def __init__(self, state: PlanningState, target: LaunchTarget | None) -> None:
        self._state, self._target = state, target
        self._usage: BudgetUsage = state.usage.copy()
        if target is not None:
            self._usage.resize(target.group, 1)
        self.taken: list[Candidate] = []
        self._placements: dict[str, str] = {}
        self._new: tuple[NewNode, ...] = ()

    def take(self, candidate: Candidate) -> None:
        """Try one more node; nothing changes where it does not fit."""
        if self._usage.reason_to_keep(candidate, DisruptionReason.UNDERUTILIZED) or self._usage.reason_not_to_shrink(
            candidate
        ):
            return
        if self._target is not None and not suits(candidate, self._target):
            return
        world = self._state.world
        point = world.checkpoint()
        templates = (self._target.template,) if self._target is not None and not self._new else ()
        packing = pack(world, world.remove(candidate.name), templates=templates, at_most=1, whole=True)
        if not packing.complete:
            world.rollback(point)
            return
        self._usage.take(candidate)
        self._usage.resize(candidate.group.name, -1)
        self.taken.append(candidate)
        self._new = self._new or packing.new_nodes
        self._placements.update(packing.placements)

    def proposal(self) -> Proposal | None:
        """Return the nodes taken as a proposal, where that is allowed and worth it."""
        nodes = tuple(self.taken)
        if not self._new:
            allowed = nodes and self._state.usage.may_shrink(nodes) and not reason_not_worth(nodes, 0.0)
            return Proposal(nodes=nodes, placements=self._placements) if allowed else None
        target = self._target
        price = sum(one.price for one in self._new)
        if target is None or not target.can_launch(nodes) or reason_not_worth(nodes, price):
            return None
        if why_failed_before(self._state.snapshot, nodes, target.group):
            return None
        removal = TrialRemoval(placements=self._placements, new_nodes=tuple(self._new))
        return with_zones(self._state, nodes, target, removal)


def best_sets(
    state: PlanningState,
    candidates: Sequence[Candidate],
    cheapest: Sequence[LaunchTarget],
    *,
    smallest: int = 1,
    most: int = 1,
) -> list[Proposal]:
    """Return up to `most` sets of `smallest` nodes or more, the best first.

    Sets that could not save as much as these, and sets that contain one without capacity for its pods, are not tried.
    """
    best: list[Proposal] = []
    full: list[tuple[LaunchTarget | None, list[frozenset[str]]]] = [(target, []) for target in (None, *cheapest)]
    for nodes in _allowed(state, candidates):
        price, names = price_of_all(nodes) or 0.0, frozenset(one.name for one in nodes)
        for target, without_capacity in full:
            hopeless = len(best) >= most and price - (target.cheapest if target else 0.0) < best[-1].worth[0]
            if hopeless or any(one <= names for one in without_capacity):
                continue
            tried = replace_proposal(state, target, nodes) if target else delete_proposal(state, nodes)
            if tried is Miss.NO_CAPACITY:
                without_capacity.append(names)
            elif isinstance(tried, Proposal) and len(nodes) >= smallest:
                best = sorted((*best, tried), key=lambda one: one.worth, reverse=True)[:most]
    return best


def _allowed(state: PlanningState, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, ...]]:
    """Yield the sets that budgets allow, the smallest first."""
    every = (nodes for size in range(1, len(candidates) + 1) for nodes in combinations(candidates, size))
    return (nodes for nodes in every if len(affordable(state, nodes)) == len(nodes))


def affordable(state: PlanningState, ordered: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that budgets allow all together."""
    usage, taken = state.usage.copy(), list[Candidate]()
    for candidate in ordered:
        if not usage.reason_to_keep(candidate, DisruptionReason.UNDERUTILIZED):
            usage.take(candidate)
            taken.append(candidate)
    return taken
