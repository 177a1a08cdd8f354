"""Access to the API servers that ends while functions work: tokens and sessions that are refused, and a cluster that
EKS deletes."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.connections import Connections
    from simulation.site import Site
    from simulation.world import World

SKEWED = 0.3  # share of the execution environments whose clock is minutes off
SLOW, FAST = -480.0, 240.0  # seconds: a token that is signed further ahead is refused for good
DELETED_AFTER = (900.0, 2700.0)  # seconds


class RefusedTokens:
    """Tokens that API servers refuse with 401: old ones, those of wrong clocks, and those of revoked sessions."""

    every = 900.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._connections = scene, connections_of(scene, random)

    def play(self) -> None:
        """Revoke the sessions of our role; a role that is assumed again is let in."""
        self._scene.say("the sessions of our role are revoked")
        self._connections.revoked = self._scene.timeline.now()


class DeletedCluster:
    """EKS cluster that its owner deletes, with its groups still there. Of two clusters the second one."""

    every = 7200.0

    def __init__(self, scene: World | Site, random: Random) -> None:
        self._scene, self._connections = scene, connections_of(scene, random)
        if scene.cluster_name == scene.system.clusters.names()[-1]:
            scene.timeline.after(random.uniform(*DELETED_AFTER), self._delete, "EKS deletes the cluster")

    def play(self) -> None:
        """Do nothing by the clock: a cluster is deleted once."""

    def _delete(self) -> None:
        self._scene.say(f"EKS has deleted the cluster {self._scene.cluster_name}")
        self._connections.deleted[self._scene.cluster_name] = self._scene.timeline.now()


def connections_of(scene: World | Site, random: Random) -> Connections:
    """Put clients in front of the API servers of a world, once."""
    from simulation.connections import Connections  # late: the product's adapters of AWS

    system = scene.system
    if system.clusters.connections is None:
        skews: dict[str, float] = {}

        def skew(environment: str) -> float:
            if environment not in skews:
                skews[environment] = random.uniform(SLOW, FAST) if random.random() < SKEWED else 0.0
            return skews[environment]

        system.clusters.connections = Connections(system.clock(skew), scene.timeline.now)
    return system.clusters.connections
