"""Pods that are bound to a node between two steps of a run, and what an old cache of the API server still shows."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from leeward.model import well_known
from leeward.model.node import Node
from simulation.convergence import is_tainted

if TYPE_CHECKING:
    from simulation.site import Site
    from simulation.world import World

BOUND = 0.3  # share of the nodes that get a pod in the moment before their taint
RUNS_FOR = (60.0, 1500.0)  # seconds; then its owner deletes the pod
OPTS_OUT = 0.3  # share of these pods that ask not to be disrupted
BEHIND_FOR = (20.0, 120.0)  # seconds for which the cache shows the past


class LateBindings:
    """Pods that the scheduler binds after the last look of a run at a node, and before its taint."""

    every = 3600.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random, self._numbers = scene, random, count(1)
        scene.kubernetes.before_taint = self._bind

    def play(self) -> None:
        """Do nothing by the clock: taints decide when."""

    def _bind(self, node: Node) -> None:
        raw = self._scene.cluster.store.find("nodes", node.name)
        bare = raw is not None and not is_tainted(raw) and not raw["spec"].get("unschedulable")
        if not bare or self._scene.over or self._random.random() >= BOUND:
            return
        name, kept = f"late-{next(self._numbers)}", self._random.random() < OPTS_OUT
        self._scene.say(f"pod {name} is bound to {node.name}{', which asks not to be disrupted' if kept else ''}")
        self._scene.cluster.create("pods", _pod(name, node.name, kept=kept))
        self._scene.timeline.after(self._random.uniform(*RUNS_FOR), lambda: self._delete(name), "a late pod is deleted")

    def _delete(self, name: str) -> None:
        if self._scene.cluster.store.find("pods", name, "default") is not None:
            self._scene.cluster.delete("pods", name, "default")


class OldCaches:
    """API servers whose watch cache is behind after an upgrade: reads that accept a cache show the past."""

    every = 600.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random = scene, random

    def play(self) -> None:
        """Let the cache stand still for a while."""
        lasts = self._random.uniform(*BEHIND_FOR)
        self._scene.say(f"the API server's cache stands still for {lasts:.0f} s")
        self._scene.kubernetes.cache.stand_still(self._scene.timeline.now() + lasts)


def _pod(name: str, node: str, *, kept: bool) -> dict[str, Any]:
    notes = {well_known.DO_NOT_DISRUPT: "true"} if kept else {}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}, "annotations": notes},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 10,
            "containers": [{"name": "main", "image": name, "resources": {"requests": {"cpu": "10m"}}}],
        },
    }
