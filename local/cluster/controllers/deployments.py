"""Deployments: one ReplicaSet per template, rolled by maxSurge and maxUnavailable, or recreated.

Left out: paused rollouts' proportional scaling. `kubectl rollout undo` works, because it is only a patch of the
template.
"""

from __future__ import annotations

import json
import zlib

from local.cluster.budgets import scaled
from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    controller_of,
    copied,
    is_deleting,
    labels_of,
    name_of,
    namespace_of,
    set_condition,
    uid_of,
)
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.timestamps import parsed
from local.cluster.world import World

from .replicasets import owner_reference
from .worklist import Worklist

_SOURCE = "deployment-controller"
_HASH = "pod-template-hash"
_REVISION = "deployment.kubernetes.io/revision"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Obj) -> str:
    """Return a short name for a pod template: equal templates, equal hash (the real alphabet, not its function)."""
    number = zlib.crc32(json.dumps(template, sort_keys=True).encode())
    return "".join(_LETTERS[int(digit) % len(_LETTERS)] for digit in str(number))


class TemplateHashes:
    """Hashes of the owners' templates, computed again when the stored template is another object.

    Stored objects are immutable and a write of the status shares the rest, so the same object has the same hash.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Obj, str]] = {}

    def of(self, owner: Obj) -> str:
        """Return the hash of a stored Deployment or DaemonSet."""
        template, known = owner["spec"]["template"], self._known.get(uid_of(owner))
        if known is None or known[0] is not template:
            known = self._known[uid_of(owner)] = (template, template_hash(template))
        return known[1]

    def forget(self, owner: Obj) -> None:
        """Drop the hash of a deleted owner."""
        self._known.pop(uid_of(owner), None)


class Deployments:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._dirty: Worklist[Key] = Worklist()
        self._hashes = TemplateHashes()

    def observe(self, change: Change) -> None:
        if change.resource == "deployments":
            if change.type is ChangeType.DELETED:
                self._hashes.forget(change.obj)
            else:
                self._dirty.add(change.key)
        elif change.resource == "replicasets":
            owner = controller_of(change.obj)
            if owner is not None and owner["kind"] == "Deployment":
                self._dirty.add((change.key[0], owner["name"]))

    def run(self) -> bool:
        return self._dirty.work(self._reconcile)

    def _reconcile(self, key: Key) -> bool:
        deployment = self._world.store.at("deployments", key)
        if deployment is None or is_deleting(deployment):
            return False
        acted = False
        if not deployment["spec"].get("paused"):
            acted = self._roll(deployment)
        return self._write_status(key) or acted

    def _roll(self, deployment: Obj) -> bool:
        sets = self._owned(deployment)
        current = self._current(deployment, sets)
        if current is None:
            self._create_set(deployment, sets)
            return True
        old = [entry for entry in sets if entry is not current]
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            return self._recreate(deployment, current, old)
        return self._rolling_update(deployment, current, old)

    def _owned(self, deployment: Obj) -> list[Obj]:
        uid = uid_of(deployment)
        owned = self._world.store.owned_by(uid, "replicasets")
        return [entry for entry in owned if (controller_of(entry) or {}).get("uid") == uid]

    def _current(self, deployment: Obj, sets: list[Obj]) -> Obj | None:
        digest = self._hashes.of(deployment)
        return next((entry for entry in sets if labels_of(entry).get(_HASH) == digest), None)

    def _create_set(self, deployment: Obj, sets: list[Obj]) -> None:
        template: Obj = copied(deployment["spec"]["template"])
        digest = self._hashes.of(deployment)
        labels = {**(template["metadata"].get("labels") or {}), _HASH: digest}
        template["metadata"]["labels"] = labels
        selector: Obj = copied(deployment["spec"]["selector"])
        selector.setdefault("matchLabels", {})[_HASH] = digest
        revision = 1 + max(
            (int(entry["metadata"].get("annotations", {}).get(_REVISION, 0)) for entry in sets), default=0
        )
        spec = {"replicas": 0, "selector": selector, "template": template}
        if deployment["spec"].get("minReadySeconds"):
            spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
        name = f"{name_of(deployment)}-{digest}"
        metadata = {
            "name": name,
            "labels": labels,
            "annotations": {_REVISION: str(revision)},
            "ownerReferences": [owner_reference(deployment)],
        }
        self._world.create("replicasets", {"metadata": metadata, "spec": spec}, namespace_of(deployment))
        self._world.change("deployments", key_of(deployment), lambda entry: _annotate_revision(entry, revision))

    def _rolling_update(self, deployment: Obj, current: Obj, old: list[Obj]) -> bool:
        wanted, surge, unavailable = _rolling_limits(deployment)
        total = sum(map(_replicas, [current, *old]))
        acted = False
        if _replicas(current) > wanted:
            acted = self._scale(deployment, current, wanted)
        elif _replicas(current) < wanted:
            room = wanted + surge - total
            if room > 0:
                acted = self._scale(deployment, current, min(wanted, _replicas(current) + room))
        return self._shrink_old(deployment, current, old, wanted - unavailable) or acted

    def _shrink_old(self, deployment: Obj, current: Obj, old: list[Obj], minimum: int) -> bool:
        """Scale down old sets: their unavailable pods first, then as many available ones as the minimum allows."""
        current = self._world.find("replicasets", name_of(current), namespace_of(current))
        new_missing = _replicas(current) - _available(current)
        budget = sum(map(_replicas, [current, *old])) - minimum - new_missing
        acted = False
        for entry in sorted(old, key=lambda entry: parsed(entry["metadata"]["creationTimestamp"])):
            unready = max(0, _replicas(entry) - _available(entry))
            step = min(_replicas(entry), max(0, budget), unready)
            if step:
                acted = self._scale(deployment, entry, _replicas(entry) - step) or acted
                budget -= step
        spare = sum(map(_available, [current, *old])) - minimum
        for entry in old:
            fresh = self._world.find("replicasets", name_of(entry), namespace_of(entry))
            step = min(_replicas(fresh), max(0, spare))
            if step:
                acted = self._scale(deployment, fresh, _replicas(fresh) - step) or acted
                spare -= step
        return acted

    def _recreate(self, deployment: Obj, current: Obj, old: list[Obj]) -> bool:
        acted = False
        for entry in old:
            acted = self._scale(deployment, entry, 0) or acted
        if any((entry.get("status") or {}).get("replicas") for entry in old):
            return acted
        return self._scale(deployment, current, int(deployment["spec"]["replicas"])) or acted

    def _scale(self, deployment: Obj, replicaset: Obj, replicas: int) -> bool:
        before = _replicas(replicaset)
        if before == replicas:
            return False
        verb = "up" if replicas > before else "down"
        message = f"Scaled {verb} replica set {name_of(replicaset)} from {before} to {replicas}"
        self._world.change("replicasets", key_of(replicaset), lambda entry: _set_replicas(entry, replicas))
        self._events.record(deployment, "ScalingReplicaSet", message, source=_SOURCE)
        return True

    def _write_status(self, key: Key) -> bool:
        deployment = self._world.store.at("deployments", key)
        return deployment is not None and self._world.write_status("deployments", key, self._status(deployment))

    def _status(self, stored: Obj) -> Obj:
        sets = self._owned(stored)
        current = self._current(stored, sets)
        wanted, _, unavailable = _rolling_limits(stored)
        available = sum(map(_available, sets))
        status: Obj = {
            "observedGeneration": stored["metadata"].get("generation", 1),
            "replicas": sum(_status(entry, "replicas") for entry in sets),
            "updatedReplicas": _status(current, "replicas") if current else 0,
            "readyReplicas": sum(_status(entry, "readyReplicas") for entry in sets),
            "availableReplicas": available,
            "unavailableReplicas": max(0, sum(map(_replicas, sets)) - available),
        }
        status = {name: value for name, value in status.items() if value}
        status["conditions"] = copied((stored.get("status") or {}).get("conditions") or [])
        self._conditions(status, enough=available >= wanted - unavailable, complete=_complete(status, wanted))
        return status

    def _conditions(self, status: Obj, *, enough: bool, complete: bool) -> None:
        now = self._world.timestamp()
        reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
        available = {"type": "Available", "status": "True" if enough else "False", "reason": reason}
        reason = "NewReplicaSetAvailable" if complete else "ReplicaSetUpdated"
        progressing = {"type": "Progressing", "status": "True", "reason": reason}
        for condition in (available, progressing):
            set_condition(status, {**condition, "lastTransitionTime": now})


def _complete(status: Obj, wanted: int) -> bool:
    return all(status.get(name, 0) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas"))


def _annotate_revision(deployment: Obj, revision: int) -> None:
    deployment["metadata"].setdefault("annotations", {})[_REVISION] = str(revision)


def _set_replicas(replicaset: Obj, replicas: int) -> None:
    replicaset["spec"]["replicas"] = replicas
    replicaset["metadata"]["generation"] = replicaset["metadata"].get("generation", 1) + 1


def _replicas(replicaset: Obj) -> int:
    return int(replicaset["spec"].get("replicas", 0))


def _status(replicaset: Obj, name: str) -> int:
    return int((replicaset.get("status") or {}).get(name, 0))


def _available(replicaset: Obj) -> int:
    return _status(replicaset, "availableReplicas")


def _rolling_limits(deployment: Obj) -> tuple[int, int, int]:
    """Return (replicas, maxSurge, maxUnavailable): surge rounds up, unavailable down, and both zero become one
    unavailable.
    """
    wanted = int(deployment["spec"]["replicas"])
    rolling = deployment["spec"]["strategy"].get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge", 0), wanted)
    value = rolling.get("maxUnavailable", 0)
    unavailable = wanted * int(value.removesuffix("%")) // 100 if isinstance(value, str) else int(value)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return wanted, surge, min(unavailable, wanted)
