"""Parts of a world that arrivals, operators and other controllers may touch, and the choice of the instance that an
event hits."""

from collections.abc import Callable, Mapping
from typing import Protocol

from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from simulation.asked import Asked
from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.aws.fleet import SimFleet
from simulation.aws.queue import Queue
from simulation.convergence import is_tainted
from simulation.faults import Injector
from simulation.journal import Journal
from simulation.system import System
from simulation.timeline import Timeline

MOVING = 3  # one pick of so many takes an instance that is joining or leaving, where there is one


class Scene(Protocol):
    """World as seen from outside of the product."""

    timeline: Timeline
    cluster_name: str
    cluster: Cluster
    fleet: SimFleet
    queue: Queue
    system: System
    injector: Injector
    started_manually: set[str]
    flags: bool
    days_ahead: float | None
    forced_upgrades: list[tuple[str, float]]
    asked: Journal[Asked]

    @property
    def seed(self) -> int | str: ...
    @property
    def register(self) -> Callable[[NodeSpec], object]: ...
    def labels(self, member: SimInstance, /) -> Mapping[str, str]: ...
    def say(self, line: str) -> None: ...
    def rejoin(self, member: SimInstance) -> None: ...


def subject(scene: Scene, pick: int, *, spot: bool = False) -> SimInstance | None:
    """Choose the instance that an event hits, None where there is none. `pick` chooses; `spot`: of spot instances only.

    Defects are most likely where two causes meet on one instance, so a third of the picks takes one that is moving
    already.
    """
    alive = [m for m in scene.fleet.instances.values() if not m.gone and (m.spot or not spot)]
    moving = [m for m in alive if is_moving(scene, m)] if (pick >> 8) % MOVING == 0 else []
    chosen = moving or [m for m in alive if m.lifecycle == IN_SERVICE]
    return chosen[pick % len(chosen)] if chosen else None


def is_moving(scene: Scene, member: SimInstance) -> bool:
    """Return whether the instance boots, leaves, was detached, or its node carries our taint."""
    node = scene.cluster.store.find("nodes", member.node)
    return member.lifecycle != IN_SERVICE or (node is not None and is_tainted(node))


def api_answers(scene: Scene) -> bool:
    """Return whether the Kubernetes API answers operators and other controllers; they retry later when it does not."""
    return scene.timeline.now() >= scene.injector.api_down_until
