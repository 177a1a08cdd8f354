"""Nodes of Karpenter beside those of the groups: they come, are drained under Karpenter's taint, and go. Karpenter
terminates their instances itself; no group has them."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING

from local.cluster.nodes import NodeSpec
from simulation.emptying import Emptying, Manner

if TYPE_CHECKING:
    from simulation.site import Site
    from simulation.world import World

MOST = 3
DISRUPTED, POOL = "karpenter.sh/disrupted", "karpenter.sh/nodepool"
MANNER = Manner(who="Karpenter", retry=10, patience=1800, stubborn=True)


class KarpenterNodes:
    """Nodes of one NodePool."""

    every = 300.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._random, self._numbers = scene, random, count(1)
        self._nodes: list[str] = []

    def play(self) -> None:
        """Launch a node, or begin to drain one."""
        if len(self._nodes) < MOST and (not self._nodes or self._random.random() < 0.6):
            self._launch()
        else:
            self._disrupt(self._random.choice(self._nodes))

    def _launch(self) -> None:
        number = next(self._numbers)
        zones = sorted({zone for group in self._scene.fleet.groups.values() for zone in group.plan.zones})
        name = f"karpenter-{number}"
        spec = NodeSpec(
            name=name,
            zone=self._random.choice(zones),
            instance_id=f"i-0ca{number:014x}",
            instance_type="m5.large",
            labels={POOL: "default", "karpenter.sh/registered": "true"},
        )
        self._scene.say(f"Karpenter launches {name}")
        self._scene.cluster.add_node(spec)
        self._nodes.append(name)

    def _disrupt(self, name: str) -> None:
        self._nodes.remove(name)
        self._scene.say(f"Karpenter disrupts {name}")
        taints = [{"key": DISRUPTED, "effect": "NoSchedule"}]
        self._scene.cluster.patch("nodes", name, {"spec": {"taints": taints}})

        def done(_empty: bool) -> None:
            if self._scene.cluster.store.find("nodes", name) is not None:
                self._scene.cluster.delete("nodes", name)

        Emptying(self._scene, name, MANNER, done).begin()
