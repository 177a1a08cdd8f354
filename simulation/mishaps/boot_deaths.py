"""Instances that end in their boot, before their node joins: by a health check, by a controller, by an operator, by
EC2."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from simulation.aws.compute import IN_SERVICE, PENDING, PENDING_WAIT, SimInstance
from simulation.owners import terminate

if TYPE_CHECKING:
    from simulation.scene import Scene

DIES, WITHIN = 0.3, 15.0  # share of the boots, and seconds from the moment at which the boot is noticed
MOST = 4  # deaths in a row of one group: a group that never gets a node is another trouble (bad images)
BOOTING = frozenset({PENDING, PENDING_WAIT, IN_SERVICE})
AUTOSCALER = "Cluster Autoscaler, for it has not registered,"


class BootDeaths:
    """Deaths in the boot, in five ways."""

    every = 6.0

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random
        self._seen: set[str] = set()
        self._in_a_row: dict[str, int] = {}
        self._ways = (self._moves, self._stays, self._decrement, self._terminate, self._taken)

    def play(self) -> None:
        """Choose among the instances that have begun to boot since the last time."""
        for member in list(self._scene.fleet.instances.values()):
            if member.id in self._seen or member.joined or member.gone or member.lifecycle not in BOOTING:
                continue
            self._seen.add(member.id)
            dies = self._random.random() < DIES and self._in_a_row.get(member.group, 0) < MOST
            self._in_a_row[member.group] = self._in_a_row.get(member.group, 0) + 1 if dies else 0
            if dies:
                way = self._random.choice(self._ways)
                self._after(self._random.uniform(0, WITHIN), member, way)

    def _after(self, seconds: float, member: SimInstance, way: object) -> None:
        def die() -> None:
            if not (member.joined or member.gone or member.leaving) and callable(way):
                way(member)

        self._scene.timeline.after(seconds, die, "an instance dies in its boot")

    def _moves(self, member: SimInstance) -> None:
        """Fail its health check; the group replaces it in another zone, where it has one."""
        group = self._scene.fleet.groups[member.group]
        others = [zone for zone in group.plan.zones if zone != member.zone]
        self._unhealthy(member, self._random.choice(others) if others else member.zone)

    def _stays(self, member: SimInstance) -> None:
        """Fail its health check; the group replaces it in the same zone."""
        self._unhealthy(member, member.zone)

    def _unhealthy(self, member: SimInstance, zone: str) -> None:
        self._scene.say(f"{member.id} fails its health check in its boot; {member.group} launches in {zone} next")
        self._scene.fleet.groups[member.group].next_zone = zone
        self._scene.fleet.unhealthy(member)

    def _decrement(self, member: SimInstance) -> None:
        """Terminate it with decrement, as Cluster Autoscaler does with a node that does not register."""
        terminate(self._scene, member, AUTOSCALER, decrement=True)

    def _terminate(self, member: SimInstance) -> None:
        """Terminate it without decrement, as an operator does."""
        terminate(self._scene, member, "an operator", decrement=False)

    def _taken(self, member: SimInstance) -> None:
        """Take it back with a spot warning, or end one that is on demand at EC2."""
        if member.spot:
            self._scene.fleet.notices.spot_warning(member)
        else:
            self._scene.say(f"EC2 ends {member.id} in its boot")
            self._scene.fleet.end_instance(member, direct=True)
