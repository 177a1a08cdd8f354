"""Effects of an upgrade on the cluster, observed from outside and counted the same way for every upgrader."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from leeward.model import well_known
from local.cluster.history import Cause
from local.cluster.objects import is_deleting, node_of
from local.cluster.store import Change, ChangeType
from local.cluster.timestamps import parsed
from simulation.world import World

LOOK_EVERY = 5.0  # seconds between two counts of instances and of unavailable nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Effects of one upgrade. `seconds` from the start until nothing is left to do. `refused`: evictions that the API
    server did not allow; `moved_again`: pods that were evicted although they had come only during the upgrade;
    `surge_hours`: of nodes beyond the group's size; `most_unavailable` nodes at once; `exceeded`: evictions past a
    budget; `pending`: pod-hours without a place.
    """

    seconds: float
    refused: int
    moved_again: int
    surge_hours: float
    most_surge: int
    most_unavailable: int
    exceeded: int
    pending: float


class Measure:
    """Measurement that begins at construction. `draining`: names of the nodes that are being drained."""

    def __init__(self, world: World, size: int, draining: Callable[[], Collection[str]]) -> None:
        self._world, self._size, self._draining = world, size, draining
        self.began = world.timeline.now()
        self._refused = world.kubernetes.refusals
        self._moved: set[str] = set()
        self._surge = self._pending = 0.0
        self._most_surge = self._most_unavailable = 0
        world.cluster.observe(self._changed)
        world.timeline.every(LOOK_EVERY, self._look, "the benchmark looks")

    def result(self) -> Measured:
        """Return the measures up to now."""
        lost = {
            pod["metadata"]["uid"]
            for member in self._world.fleet.instances.values()
            if member.gone
            for pod in self._world.cluster.store.pods_on(member.node)
            if self._came_later(pod)
        }
        violations = self._world.cluster.history.violations()
        return Measured(
            seconds=self._world.timeline.now() - self.began,
            refused=self._world.kubernetes.refusals - self._refused,
            moved_again=len(self._moved | lost),
            surge_hours=self._surge / 3600,
            most_surge=self._most_surge,
            most_unavailable=self._most_unavailable,
            exceeded=sum(one.cause is Cause.EVICTION for one in violations),
            pending=self._pending / 3600,
        )

    def _changed(self, change: Change) -> None:
        if change.resource != "pods" or change.type is not ChangeType.MODIFIED:
            return
        if is_deleting(change.obj) and node_of(change.obj) and self._came_later(change.obj):
            self._moved.add(change.obj["metadata"]["uid"])

    def _came_later(self, pod: dict[str, dict[str, str]]) -> bool:
        return parsed(pod["metadata"]["creationTimestamp"]) >= self.began

    def _look(self) -> None:
        store = self._world.cluster.store
        surge = max(sum(not one.gone for one in self._world.fleet.instances.values()) - self._size, 0)
        self._surge += surge * LOOK_EVERY
        self._most_surge = max(self._most_surge, surge)
        unavailable = sum(bool(store.pods_on(node)) for node in self._draining())
        self._most_unavailable = max(self._most_unavailable, unavailable)
        self._pending += LOOK_EVERY * sum(node_of(pod) is None for pod in store.each("pods"))


def tainted_nodes(world: World) -> list[str]:
    """Return the nodes that carry the taint of a Leeward termination."""
    return [
        node["metadata"]["name"]
        for node in world.cluster.store.each("nodes")
        if any(taint["key"] == well_known.DISRUPTED_TAINT for taint in node["spec"].get("taints") or ())
    ]
