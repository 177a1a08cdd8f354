"""Observation of a cluster in one run: the candidates, the remaining budgets, and the world in which removals are
tried.

In the world, pods that have no node and pods of terminating nodes have been placed already: the capacity they use is
not free. Terminating nodes take no pods, but stay topology domains while their Node objects exist; zones in which a
group can launch are domains too (docs/designs/scheduling.md)."""

from collections.abc import Mapping
from copy import copy
from functools import cached_property

from leeward.budgets.usage import BudgetUsage
from leeward.disruption.candidates import Candidate, candidates
from leeward.disruption.targets import targets
from leeward.drift.detect import Drifted, all_drift
from leeward.scheduling.packing import pack
from leeward.scheduling.pods import PodSpec
from leeward.scheduling.world import World
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.snapshot.free_capacity import is_leaving, specs_by_free_capacity
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
