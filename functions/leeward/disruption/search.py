"""Which several nodes to remove together, with at most one cheaper node in their place.

All sets cannot be tried. Two searches are made and the better result is taken: a greedy one that takes node after node
as long as the pods of all still have places, and Karpenter's binary search over prefixes of the candidates in their
order (pkg/controllers/disruption/multinodeconsolidation.go), so that the result is never worse than that."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from leeward.disruption.candidates import Candidate
from leeward.disruption.removal import Removal, accepted, in_zone, with_new, without
from leeward.disruption.round import Round
from leeward.disruption.savings import saved, why_not_worth
from leeward.disruption.spending import Spending
from leeward.disruption.targets import Target, same_kind, why_no_spot
from leeward.policy.document import Reason
from leeward.scheduling.outcome import NewNode
from leeward.scheduling.packing import pack

MOST_NODES = 100  # of one command, as in Karpenter
MOST_TARGETS = 8  # that the searches look at, the cheapest


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Nodes that can go. `target` None: nothing has to be launched; `price`: of the new node in the dearest of
    `zones`.
    """

    nodes: tuple[Candidate, ...]
    placements: Mapping[str, str] = field(default_factory=dict)
    target: Target | None = None
    zones: tuple[str, ...] = ()
    price: float = 0.0

    @property
    def worth(self) -> tuple[float, float, int]:
        """The most saved, then the least disturbed, then the fewest nodes."""
        return saved(self.nodes, self.price) or 0.0, -sum(one.cost for one in self.nodes), -len(self.nodes)


def several(
    found: Round, ordered: Sequence[Candidate], alone: Mapping[str, Removal], targets: Sequence[Target]
) -> Proposal | None:
    """The best set of two nodes or more, None where there is none. `alone`: what came of taking each away by itself:
    who cannot go alone on free capacity cannot go so with others.
    """
    deletable = [one for one in ordered if one.name in alone and not alone[one.name].why]
    looked_at = [one for one in ordered if one.name in alone][:MOST_NODES]
    near = targets[:MOST_TARGETS]
    found_sets: list[Proposal | None] = []
    for order in (_calmest, _dearest):
        bare = _greedy(found, sorted(deletable, key=order), (), None)
        firm = bare.nodes if bare else ()
        mixed = sorted(looked_at, key=order)
        found_sets += [bare, *(_greedy(found, mixed, firm, target) for target in near)]
        found_sets += [_greedy(found, mixed, (), target) for target in near if firm]
    prefix = _affordable(found, looked_at)
    found_sets.append(_longest(prefix, partial(_deleted, found)))
    found_sets += [_longest(prefix, partial(_replaced, found, target)) for target in near]
    good = [one for one in found_sets if one is not None and len(one.nodes) > 1]
    return max(good, key=lambda one: one.worth, default=None)


def _calmest(candidate: Candidate) -> tuple[float, int, str]:
    return candidate.rank


def _dearest(candidate: Candidate) -> tuple[float, tuple[float, int, str]]:
    """What saves most goes first where budgets or room are short."""
    return -(candidate.price or 0.0), candidate.rank


def _affordable(found: Round, ordered: Iterable[Candidate]) -> list[Candidate]:
    """Those that budgets allow all together."""
    spending, taken = found.spending.copy(), list[Candidate]()
    for candidate in ordered:
        if not spending.why_not(candidate, Reason.UNDERUTILIZED):
            spending.take(candidate)
            taken.append(candidate)
    return taken


def _longest(
    prefix: Sequence[Candidate], attempted: Callable[[Sequence[Candidate]], Proposal | None]
) -> Proposal | None:
    """Binary search over the prefix' length, as if a shorter one were always possible where a longer one is."""
    best: Proposal | None = None
    low, high = 2, len(prefix)
    while low <= high:
        middle = (low + high) // 2
        proposal = attempted(prefix[:middle])
        if proposal is None:
            high = middle - 1
        else:
            best, low = proposal, middle + 1
    return best


def _deleted(found: Round, nodes: Sequence[Candidate]) -> Proposal | None:
    if not found.more() or not found.spending.may_shrink(nodes) or why_not_worth(nodes, 0.0):
        return None
    removal = without(found, nodes)
    return None if removal.why else Proposal(nodes=tuple(nodes), placements=removal.placements)


def _replaced(found: Round, target: Target, nodes: Sequence[Candidate]) -> Proposal | None:
    if not found.more() or not _fair(found, nodes, target) or why_not_worth(nodes, target.cheapest):
        return None
    removal = with_new(found, nodes, target)
    if removal.why or not removal.new_nodes or why_not_worth(nodes, removal.price):
        return None
    return with_zones(found, nodes, target, removal)


def _fair(found: Round, nodes: Sequence[Candidate], target: Target) -> bool:
    """Sizes and rules of price that hold whatever the pods need."""
    unfit = any(same_kind(one, target) or why_no_spot(one, target) or one.price is None for one in nodes)
    return not unfit and target.has_room(nodes) and found.spending.may_shrink(nodes, grows=target.group)


def _greedy(
    found: Round, ordered: Iterable[Candidate], firm: Sequence[Candidate], target: Target | None
) -> Proposal | None:
    """Take node after node while all pods still have places; `firm` go first, they are known to fit together."""
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
    """One greedy search, in a world that is taken back afterwards."""

    def __init__(self, found: Round, target: Target | None) -> None:
        self._found, self._target = found, target
        self._spending: Spending = found.spending.copy()
        if target is not None:
            self._spending.resize(target.group, 1)
        self.taken: list[Candidate] = []
        self._placements: dict[str, str] = {}
        self._new: tuple[NewNode, ...] = ()

    def take(self, candidate: Candidate) -> None:
        """Try one more; nothing changes where it does not work."""
        if self._spending.why_not(candidate, Reason.UNDERUTILIZED) or self._spending.why_not_smaller(candidate):
            return
        if self._target is not None and not self._suits(candidate, self._target):
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

    def _suits(self, candidate: Candidate, target: Target) -> bool:
        return candidate.price is not None and not same_kind(candidate, target) and not why_no_spot(candidate, target)

    def proposal(self) -> Proposal | None:
        """What was taken, where that is allowed and worth it."""
        nodes = tuple(self.taken)
        if not self._new:
            allowed = nodes and self._found.spending.may_shrink(nodes) and not why_not_worth(nodes, 0.0)
            return Proposal(nodes=nodes, placements=self._placements) if allowed else None
        target = self._target
        price = sum(one.price for one in self._new)
        if target is None or not target.has_room(nodes) or why_not_worth(nodes, price):
            return None
        removal = accepted(self._found, Removal(placements=self._placements, new_nodes=self._new), target)
        return None if removal.why else with_zones(self._found, nodes, target, removal)


def with_zones(found: Round, nodes: Sequence[Candidate], target: Target, removal: Removal) -> Proposal:
    """With every zone in which the new node would do and still be worth it: the price is the dearest of these."""
    chosen = removal.new_nodes[0].zone
    prices = {one.zone: one.price for one in target.template.offerings}
    zones = tuple(
        zone
        for zone, price in prices.items()
        if zone == chosen or (not why_not_worth(nodes, price) and not in_zone(found, nodes, target, zone).why)
    )
    price = max(prices[zone] for zone in zones)
    return Proposal(nodes=tuple(nodes), placements=removal.placements, target=target, zones=zones, price=price)
