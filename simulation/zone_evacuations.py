"""Operators who evacuate a zone of one cluster of a world and open it again, with the writes of `leeward zone`."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from leeward.cli.zone.record import evacuated, opened
from simulation.aws.recovery import Shifted

if TYPE_CHECKING:
    from simulation.scene import Scene

EVACUATES_EVERY = 2400.0  # seconds
LASTS = (300.0, 2000.0)
WHO = "arn:aws:iam::111122223333:user/operator"


class ZoneEvacuations:
    """Evacuations of a scene, one after the other. The rules judge a closed zone as a shifted one."""

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random

    def evacuate(self) -> None:
        """Evacuate a random zone that has nodes; the operator opens it after a while."""
        scene, catalog = self._scene, self._scene.system.catalog
        zones = sorted({member.zone for member in scene.fleet.instances.values() if not member.gone})
        record = catalog.zone_record(scene.cluster_name)
        if len(zones) < 2 or record.evacuations:
            return
        zone, lasts = self._random.choice(zones), self._random.uniform(*LASTS)
        scene.say(f"an operator evacuates {zone} of {scene.cluster_name} for {lasts:.0f} s")
        now = scene.timeline.instant()
        catalog.write_zone_record(evacuated(record, zone=zone, groups=(), by=WHO, why="a test", now=now), now)
        closed = Shifted(zone=zone, began=scene.timeline.now())
        scene.system.recovery.history(scene.cluster_name).append(closed)
        scene.timeline.after(lasts, lambda: self._open(zone, closed), "operator opens a zone")

    def _open(self, zone: str, closed: Shifted) -> None:
        scene, catalog = self._scene, self._scene.system.catalog
        scene.say(f"an operator opens {zone} of {scene.cluster_name} again")
        now = scene.timeline.instant()
        catalog.write_zone_record(opened(catalog.zone_record(scene.cluster_name), zone, now), now)
        closed.ended = scene.timeline.now()
