"""Trial removal of nodes: their pods on free capacity, or with new nodes of one group beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leeward.disruption.candidates import Candidate
from leeward.disruption.command import Replacement
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.targets import Target
from leeward.scheduling.outcome import NO_TIME, NewNode, Packing
from leeward.scheduling.packing import attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Result of a trial. `placements`: pod to node; `new_nodes`: none where free capacity was enough; `why`: why it is
    not possible, naming the pod, empty when it is; `NO_TIME` where the time ended the trial.
    """

    placements: Mapping[str, str] = field(default_factory=dict)
    new_nodes: tuple[NewNode, ...] = ()
    why: str = ""

    @property
    def price(self) -> float:
        """Price of the new nodes in dollars an hour."""
        return sum(node.price for node in self.new_nodes)


def on_free_capacity(state: PlanningState, removed: Sequence[Candidate]) -> Removal:
    """Try the removal on free capacity alone."""
    return _removal(attempt(state.world, (one.name for one in removed), whole=True))


def with_new_nodes(
    state: PlanningState, removed: Sequence[Candidate], target: Target, *, at_most: int | None = 1
) -> Removal:
    """Try the removal with new nodes of the target: the zone is the scheduler's choice among the cheapest."""
    names = [one.name for one in removed]
    packing = attempt(state.world, names, templates=(target.template,), at_most=at_most, whole=True)
    return _removal(packing)


def in_zone(state: PlanningState, removed: Sequence[Candidate], target: Target, zone: str) -> Removal:
    """Try the removal with one new node in that zone."""
    names = [one.name for one in removed]
    packing = attempt(state.world, names, templates=(target.by_zone[zone],), at_most=1, whole=True)
    return _removal(packing)


def apply(state: PlanningState, removed: Sequence[Candidate], removal: Removal) -> None:
    """Leave the world as the removal leaves it, for later trials. Pods on new nodes are removed from it: no later trial
    may count on a node that does not exist yet.
    """
    world = state.world
    for pod in [pod for one in removed for pod in world.remove(one.name)]:
        number = world.fleet.numbers.get(removal.placements[pod.key], -1)
        if number >= 0 and state.snapshot.node(removal.placements[pod.key]) is not None:
            world.put(pod, world.kind(pod), number)


def replacements(
    state: PlanningState, removed: Sequence[Candidate], target: Target, removal: Removal
) -> list[Replacement]:
    """Return one replacement for each new node. A single one may come up in every zone where the pods fit as well."""
    if len(removal.new_nodes) != 1:
        return [replacement(target, (node.zone,)) for node in removal.new_nodes]
    chosen = removal.new_nodes[0].zone
    more = [zone for zone in target.by_zone if zone == chosen or not in_zone(state, removed, target, zone).why]
    return [replacement(target, tuple(more))]


def replacement(target: Target, zones: tuple[str, ...]) -> Replacement:
    """Return the replacement, named by group, zones and capacity type, never by instance type."""
    launchable = target.launchable
    prices = [launchable.prices[zone] for zone in zones if zone in launchable.prices]
    return Replacement(
        group=target.group,
        types=launchable.types,
        zones=zones,
        capacity=launchable.capacity,
        price=max(prices) if len(prices) == len(zones) and prices else None,
    )


def _removal(packing: Packing) -> Removal:
    if packing.timed_out:
        return Removal(why=NO_TIME)
    if packing.complete:
        return Removal(placements=packing.placements, new_nodes=packing.new_nodes)
    lost = packing.unplaced[0]
    return Removal(why=f"pod {lost.pod} has no other place: {lost.why}")
