"""Claims and volumes: binds claims that name their volume, makes volumes at once where the class says so, reclaims.

Rules: `pkg/controller/volume/persistentvolume/pv_controller.go` and external-provisioner. Claims that wait for their
first consumer are the scheduler's. Left out: matching claims with volumes made in advance, protection finalizers.
"""

from __future__ import annotations

from local.cluster.objects import Obj, is_deleting, labels_of, name_of, namespace_of, uid_of
from local.cluster.store import Change, ChangeType, Key
from local.cluster.volumes import ZONE, bind, class_of, provision, volume_of, waits_for_consumer
from local.cluster.world import World

from .worklist import Worklist


class Claims:
    def __init__(self, world: World) -> None:
        self._world = world
        self._claims: Worklist[Key] = Worklist()
        self._released: Worklist[str] = Worklist()
        self._waiting: dict[Key, None] = {}

    def observe(self, change: Change) -> None:
        if change.resource == "persistentvolumeclaims":
            if change.type is ChangeType.DELETED:
                self._released.add((change.obj.get("spec") or {}).get("volumeName") or "")
            else:
                self._claims.add(change.key)
        elif change.type is ChangeType.ADDED and change.resource in ("persistentvolumes", "nodes"):
            for key in self._waiting:
                self._claims.add(key)

    def run(self) -> bool:
        acted = self._claims.work(self._serve)
        return self._released.work(self._reclaim) or acted

    def _serve(self, key: Key) -> bool:
        self._waiting.pop(key, None)
        claim = self._world.store.at("persistentvolumeclaims", key)
        if claim is None or is_deleting(claim):
            return False
        volume = volume_of(claim, self._world.store)
        if volume is not None:
            return bind(self._world, claim, volume)
        if claim["spec"].get("volumeName") or not self._provision(claim):
            self._waiting[key] = None
            return False
        return True

    def _provision(self, claim: Obj) -> bool:
        """Make a volume in any zone that has nodes, where the class does not wait for a pod."""
        storage_class = class_of(claim, self._world.store)
        if storage_class is None or waits_for_consumer(storage_class):
            return False
        zones = sorted({labels_of(node)[ZONE] for node in self._world.store.each("nodes") if ZONE in labels_of(node)})
        if not zones:
            return False
        provision(self._world, claim, self._world.random.choice(zones))
        return True

    def _reclaim(self, name: str) -> bool:
        """Reclaim a volume whose claim is deleted: delete it, or keep it for manual inspection."""
        volume = self._world.store.find("persistentvolumes", name)
        reference = (volume or {}).get("spec", {}).get("claimRef")
        if volume is None or reference is None:
            return False
        claim = self._world.store.find("persistentvolumeclaims", reference["name"], reference["namespace"])
        if claim is not None and uid_of(claim) == reference.get("uid"):
            return False
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            self._world.delete("persistentvolumes", volume)
            return True
        status = {**(volume.get("status") or {}), "phase": "Released"}
        return self._world.write_status("persistentvolumes", (namespace_of(volume) or "", name_of(volume)), status)
