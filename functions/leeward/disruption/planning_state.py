"""Observation of a cluster in one run: the candidates, the remaining budgets, and the world in which removals are
tried.

In the world, pods that have no node and pods of terminating nodes have been placed already: the capacity they use is
not free. Terminating nodes take no pods, but stay topology domains while their Node objects exist; zones in which a
group can launch are domains too (docs/designs/scheduling.md)."""

from collections.abc import Callable, Mapping
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


def always() -> bool:
    """Set no limit to the time for tries."""
    return True


class PlanningState:
    """Shared state of all methods of a run. `more` says whether there is time for another try: called before each."""

    def __init__(self, snapshot: ClusterSnapshot, more: Callable[[], bool] = always) -> None:
        self.snapshot = snapshot
        self.more = more
        state, self.why_not = candidates(snapshot)
        self.candidates: Mapping[str, Candidate] = state
        self.usage = BudgetUsage.of(snapshot)

    def within(self, more: Callable[[], bool]) -> "PlanningState":
        """Return the same observation, including its cached results, with another time limit for tries."""
        same = copy(self)
        same.more = more
        return same

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
        packing = pack(world, [*displaced, *world.pending])
        arrivals: dict[str, str] = {}
        for pod, node in sorted(packing.placements.items()):
            arrivals.setdefault(node, pod)
        return world, arrivals

    @property
    def world(self) -> World:
        """World of the run, built when the first method needs it; methods leave it unchanged."""
        return self._built[0]

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
