"""Observation of a cluster in one run: the candidates, the remaining budgets, and the world in which removals are
tried.

In the world, pods that have no node and pods of terminating nodes have been placed already: the capacity they use is
not free. Terminating nodes take no pods, but stay topology domains while their Node objects exist; zones in which a
group can launch are domains too (docs/designs/scheduling.md). A trial removal places the pods of nodes on free
capacity, or with new nodes of one group beside it."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

from leeward.budgets.usage import BudgetUsage
from leeward.disruption.candidates import Candidate, candidates
from leeward.disruption.command import PlannedReplacement
from leeward.disruption.targets import LaunchTarget, targets
from leeward.drift.detect import Drifted, all_drift
from leeward.scheduling.outcome import NO_TIME, NewNode, Packing
from leeward.scheduling.packing import attempt, pack
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.snapshot.cluster import ClusterSnapshot, is_leaving, specs_by_free_capacity
from leeward.time_budget import SearchTime

FOR_PENDING = 0.25  # of the time, for the places of pods without a node: those not tried by then take no capacity


def always() -> bool:
    """Set no limit to the time for tries."""
    return True


class PlanningState:
    """Shared state of all methods of a run. `time`: for tries; asked before each, and during a long one."""

    def __init__(self, snapshot: ClusterSnapshot, time: SearchTime | None = None) -> None:
        self.snapshot = snapshot
        self.time = time or SearchTime()
        state, self.reasons_to_keep = candidates(snapshot)
        self.candidates: Mapping[str, Candidate] = state
        self.usage = BudgetUsage.of(snapshot)

    def more(self) -> bool:
        """Return whether there is time for another try."""
        return self.time.more()

    def within(self, time: SearchTime) -> "PlanningState":
        """Return the same observation, including its world, with another time limit for tries."""
        _ = self._built, self.specs  # once, before the copy: it shares them
        same = copy(self)
        same.time = time
        return same

    def part(self, share: float) -> "PlanningState":
        """Return the same observation for a part of the search: it gets that share of the time that is left."""
        return self.within(self.time.part(share))

    def after(self, usage: BudgetUsage) -> "PlanningState":
        """Return the run after a command of this run: in the same world, with the budgets that are left then."""
        later = copy(self)
        later.usage = usage
        return later

    @cached_property
    def _built(self) -> tuple[World, dict[str, str]]:
        snapshot = self.snapshot
        world = World(
            specs_by_free_capacity(snapshot),
            snapshot.pod_specs,
            daemons=snapshot.daemon_specs,
            launchable=[target.template for target in targets(snapshot, priced=False)[0]],
        )
        leaving = [node.name for node in snapshot.nodes if is_leaving(snapshot, node)]
        displaced = [pod for name in sorted(leaving) for pod in world.remove(name)]
        world.in_time = self.time.part(FOR_PENDING).in_time
        packing = pack(world, [*displaced, *world.pending])
        arrivals: dict[str, str] = {}
        for pod, node in sorted(packing.placements.items()):
            arrivals.setdefault(node, pod)
        return world, arrivals

    @property
    def world(self) -> World:
        """World of the run, built when the first method needs it; methods leave it unchanged. Its packings end with the
        time of this part of the search.
        """
        world = self._built[0]
        world.in_time = self.time.in_time
        return world

    @property
    def arrivals(self) -> Mapping[str, str]:
        """Nodes on which a pod without a node will land, by the first such pod's name: they are not empty."""
        return self._built[1]

    @cached_property
    def drift(self) -> Mapping[str, Drifted]:
        """Drift of every node, by name."""
        return {one.node: one for one in all_drift(self.snapshot)}

    @cached_property
    def specs(self) -> Mapping[str, PodSpec]:
        """All pods by `namespace/name`."""
        return {pod.key: pod for pod in self.snapshot.pod_specs}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRemoval:
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


def on_free_capacity(state: PlanningState, removed: Sequence[Candidate]) -> TrialRemoval:
    """Try the removal on free capacity alone."""
    return _removal(attempt(state.world, (one.name for one in removed), whole=True))


def with_new_nodes(
    state: PlanningState, removed: Sequence[Candidate], target: LaunchTarget, *, at_most: int | None = 1
) -> TrialRemoval:
    """Try the removal with new nodes of the target: the zone is the scheduler's choice among the cheapest."""
    names = [one.name for one in removed]
    packing = attempt(state.world, names, templates=(target.template,), at_most=at_most, whole=True)
    return _removal(packing)


def in_zone(state: PlanningState, removed: Sequence[Candidate], target: LaunchTarget, zone: str) -> TrialRemoval:
    """Try the removal with one new node in that zone."""
    names = [one.name for one in removed]
    packing = attempt(state.world, names, templates=(target.by_zone[zone],), at_most=1, whole=True)
    return _removal(packing)


def apply(state: PlanningState, removed: Sequence[Candidate], removal: TrialRemoval) -> None:
    """Leave the world as the removal leaves it, for later trials. Pods on new nodes are removed from it: no later trial
    may count on a node that does not exist yet.
    """
    world = state.world
    for pod in [pod for one in removed for pod in world.remove(one.name)]:
        number = world.fleet.numbers.get(removal.placements[pod.key], -1)
        if number >= 0 and state.snapshot.node(removal.placements[pod.key]) is not None:
            world.put(pod, world.kind(pod), number)


def replacements(
    state: PlanningState, removed: Sequence[Candidate], target: LaunchTarget, removal: TrialRemoval
) -> list[PlannedReplacement]:
    """Return one replacement for each new node. A single one may come up in every zone where the pods fit as well."""
    if len(removal.new_nodes) != 1:
        return [replacement(target, (node.zone,)) for node in removal.new_nodes]
    chosen = removal.new_nodes[0].zone
    more = [zone for zone in target.by_zone if zone == chosen or not in_zone(state, removed, target, zone).why]
    return [replacement(target, tuple(more))]


def replacement(target: LaunchTarget, zones: tuple[str, ...]) -> PlannedReplacement:
    """Return the replacement, named by group, zones and capacity type, never by instance type."""
    launchable = target.launchable
    prices = [launchable.prices[zone] for zone in zones if zone in launchable.prices]
    return PlannedReplacement(
        group=target.group,
        types=launchable.types,
        zones=zones,
        capacity=launchable.capacity,
        price=max(prices) if len(prices) == len(zones) and prices else None,
    )


def _removal(packing: Packing) -> TrialRemoval:
    if packing.timed_out:
        return TrialRemoval(why=NO_TIME)
    if packing.complete:
        return TrialRemoval(placements=packing.placements, new_nodes=packing.new_nodes)
    lost = packing.unplaced[0]
    return TrialRemoval(why=f"pod {lost.pod} has no other place: {lost.why}")
