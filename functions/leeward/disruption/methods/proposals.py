"""Proposal to remove one set of nodes as a whole: on free capacity alone, or with one cheaper node of a group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from leeward.disruption.candidates import Candidate
from leeward.disruption.launch_inputs import why_failed_before
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.removal import Removal, in_zone, on_free_capacity, with_new_nodes
from leeward.disruption.savings import reason_not_worth, saved
from leeward.disruption.targets import Target, why_no_spot
from leeward.scheduling.outcome import NO_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Nodes that can be removed. `target` None: nothing has to be launched; `price`: that of the new node in the most
    expensive of `zones`. `spare`: these nodes could be removed without it, the nodes of later commands could not.
    """

    nodes: tuple[Candidate, ...]
    placements: Mapping[str, str] = field(default_factory=dict)
    target: Target | None = None
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


def replace_proposal(state: PlanningState, target: Target, nodes: Sequence[Candidate]) -> Proposal | Miss:
    """Try the set with one new node of the target, which has to be needed."""
    if not state.more() or not _is_allowed(state, nodes, target) or reason_not_worth(nodes, target.cheapest):
        return Miss.NOT_NOW
    removal = with_new_nodes(state, nodes, target)
    if removal.why:
        return _miss(removal)
    if not removal.new_nodes or reason_not_worth(nodes, removal.price):
        return Miss.NOT_NOW
    return with_zones(state, nodes, target, removal)


def _miss(removal: Removal) -> Miss:
    return Miss.NOT_NOW if removal.why == NO_TIME else Miss.NO_CAPACITY


def with_spare(state: PlanningState, deletion: Proposal, target: Target) -> Proposal | None:
    """Return a deletion, with a new node of the target for later commands; None where that is not worth it."""
    offerings = target.template.offerings
    price = max((one.price for one in offerings), default=0.0)
    if not offerings or not _is_allowed(state, deletion.nodes, target) or reason_not_worth(deletion.nodes, price):
        return None
    zones = tuple(one.zone for one in offerings)
    return replace(deletion, target=target, zones=zones, price=price, spare=True)


def _is_allowed(state: PlanningState, nodes: Sequence[Candidate], target: Target) -> bool:
    """Return whether sizes and rules of price allow the replacement, whatever the pods need."""
    fair = all(suits(one, target) for one in nodes) and not why_failed_before(state.snapshot, nodes, target.group)
    return fair and target.can_launch(nodes) and state.usage.may_shrink(nodes, grows=target.group)


def suits(candidate: Candidate, target: Target) -> bool:
    """Return whether the rules of price let a node of the target take the candidate's place."""
    return candidate.price is not None and not why_no_spot(candidate, target)


def with_zones(state: PlanningState, nodes: Sequence[Candidate], target: Target, removal: Removal) -> Proposal:
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
