"""Controllers, scheduler and kubelets: each watches writes, queues the affected objects, and acts in `run`.

Order matters only for how much happens in one pass; `model.Cluster.step` runs them until none has work left.
"""

from __future__ import annotations

from typing import Protocol

from local.cluster.event_recorder import EventRecorder
from local.cluster.store import Change
from local.cluster.world import World

from .attachments import Attachments
from .claims import Claims
from .daemonsets import DaemonSets
from .deployments import Deployments
from .garbage import Garbage
from .jobs import Jobs
from .kubelet import Kubelets
from .node_lifecycle import NodeLifecycle
from .registration import Registration
from .replicasets import ReplicaSets
from .scheduler import Scheduler
from .statefulsets import StatefulSets


class Controller(Protocol):
    """Interface of a controller; both methods are called by the model only."""

    def observe(self, change: Change) -> None:
        """Queue the affected objects. Must not write."""

    def run(self) -> bool:
        """Process every queued object; return True when something was done. Idempotent."""


def all_controllers(world: World, events: EventRecorder) -> list[Controller]:
    """Return the controllers in the order in which a pass runs them: owners before their dependents, then placement,
    then nodes.
    """
    return [
        Garbage(world),
        Deployments(world, events),
        ReplicaSets(world, events),
        StatefulSets(world, events),
        Jobs(world, events),
        DaemonSets(world, events),
        Claims(world),
        Scheduler(world, events),
        Attachments(world, events),
        Kubelets(world, events),
        NodeLifecycle(world, events),
        *([Registration(world, events)] if world.settings.node_leases else []),
    ]
