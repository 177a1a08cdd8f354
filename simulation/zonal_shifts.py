"""Zonal shifts of one cluster of a world: ARC begins and ends them, EKS cordons the nodes of the zone. Events are best
effort: some never come, and a shift that expires has none.

Source: AWS, "Learn about Amazon Application Recovery Controller's zonal shift in Amazon EKS": nodes are cordoned, none
is evicted or terminated."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from random import Random
from typing import TYPE_CHECKING

from leeward.model.zonal_shift import ShiftKind
from local.cluster.objects import name_of
from simulation.aws.recovery import Shifted, zone_id_of

if TYPE_CHECKING:
    from simulation.scene import Scene

SHIFTS_EVERY = 1500.0  # seconds
LASTS = (240.0, 1300.0)
LOST, EXPIRES = 0.4, 0.4  # of the begins without an event, of the ends
ZONE_LABEL = "topology.kubernetes.io/zone"
EVENTS = {  # detail types of begin and end
    ShiftKind.AUTOSHIFT: ("Autoshift In Progress", "Autoshift Completed"),
    ShiftKind.PRACTICE_RUN: ("Practice Run Started", "Practice Run Succeeded"),
    ShiftKind.MANUAL: ("Manual Shift Started", "Manual Shift Canceled"),
    ShiftKind.FIS: ("FIS Experiment Autoshift In Progress", "FIS Experiment Autoshift Completed"),
}


class ZonalShifts:
    """Shifts of a scene, one after the other."""

    def __init__(self, scene: Scene, random: Random) -> None:
        self._scene, self._random = scene, random
        self._cordoned: set[str] = set()

    def shift(self) -> None:
        """Begin a shift away from a random zone that has nodes; it ends by itself."""
        scene, now = self._scene, self._scene.timeline.now()
        zones = sorted({member.zone for member in scene.fleet.instances.values() if not member.gone})
        if not zones or scene.system.recovery.in_effect(scene.cluster_name):
            return
        zone, kind, lasts = self._random.choice(zones), self._random.choice(tuple(EVENTS)), self._random.uniform(*LASTS)
        expires = self._random.random() < EXPIRES
        since = scene.timeline.instant()
        until = since + timedelta(seconds=lasts) if expires else None
        scene.say(f"ARC shifts {scene.cluster_name} away from {zone}: {kind.value} for {lasts:.0f} s")
        scene.system.recovery.start(scene.cluster_name, zone_id_of(zone), kind, since, until)
        ends = inf if until is None else until.timestamp()
        shift = Shifted(zone=zone, began=now, expires=ends)
        scene.system.recovery.history(scene.cluster_name).append(shift)
        self._cordon(zone)
        if self._random.random() >= LOST:
            scene.fleet.notices.zonal_shift(EVENTS[kind][0], zone_id_of(zone))
        scene.timeline.after(lasts, lambda: self._end(shift, kind, announced=not expires), "zonal shift ends")

    def _end(self, shift: Shifted, kind: ShiftKind, *, announced: bool) -> None:
        scene, zone = self._scene, shift.zone
        scene.say(f"the zonal shift of {scene.cluster_name} away from {zone} is over")
        scene.system.recovery.end(scene.cluster_name, zone_id_of(zone))
        shift.ended = scene.timeline.now()
        for name in sorted(self._cordoned):
            node = scene.cluster.store.find("nodes", name)
            if node is not None and not node["spec"].get("taints"):
                scene.cluster.patch("nodes", name, {"spec": {"unschedulable": None}})
        self._cordoned.clear()
        if announced:
            scene.fleet.notices.zonal_shift(EVENTS[kind][1], zone_id_of(zone))

    def _cordon(self, zone: str) -> None:
        for node in self._scene.cluster.store.sorted("nodes"):
            labels = node["metadata"].get("labels") or {}
            if labels.get(ZONE_LABEL) == zone and not node["spec"].get("unschedulable"):
                self._cordoned.add(name_of(node))
                self._scene.cluster.patch("nodes", name_of(node), {"spec": {"unschedulable": True}})
