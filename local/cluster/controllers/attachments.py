"""VolumeAttachments: a volume is attached to the node where a pod needs it, and detached after the last such pod is
gone.

Rules: `pkg/controller/volume/attachdetach` and external-attacher. A volume that can be on one node only stays there
until it is detached: some seconds after its pod ended in an orderly way, six minutes after a pod was removed from a
node without a kubelet, because the volume is not unmounted, or at once where such a node is tainted out-of-service.
Left out: limits of a node.
"""

from __future__ import annotations

import hashlib

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import Obj, is_finished, name_of, node_of, uid_of
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.volumes import claim_names, volume_of
from local.cluster.world import World

from .kubelet import has_kubelet, is_out_of_service
from .worklist import Worklist

_SOURCE = "attachdetach-controller"
_RESOURCE = "volumeattachments"


class Attachments:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._claims: Worklist[Key] = Worklist()
        self._attach: Worklist[Key] = Worklist()
        self._gone: Worklist[str] = Worklist()
        self._users: dict[Key, dict[Key, None]] = {}
        self._present: dict[str, dict[Key, None]] = {}
        self._leaving: dict[str, float] = {}

    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            self._pod_changed(change)
        elif change.resource == "nodes" and is_out_of_service(change.obj) and not is_out_of_service(change.old):
            self._hurry(name_of(change.obj))
        elif change.resource == "persistentvolumeclaims":
            self._claims.add(change.key)
        elif change.resource == "persistentvolumes" and change.type is ChangeType.DELETED:
            self._gone.add(name_of(change.obj))
        elif change.resource == _RESOURCE:
            keys = self._present.setdefault(_volume_name(change.obj), {})
            if change.type is ChangeType.DELETED:
                keys.pop(change.key, None)
                self._leaving.pop(uid_of(change.obj), None)
            else:
                keys[change.key] = None

    def _pod_changed(self, change: Change) -> None:
        """Update the users of the pod's claims. A pod uses its claims from its binding to a node until it is deleted or
        has finished.
        """
        pod = change.obj
        uses = change.type is not ChangeType.DELETED and node_of(pod) is not None and not is_finished(pod)
        for name in claim_names(pod):
            claim = (change.key[0], name)
            users = self._users.setdefault(claim, {})
            if uses and change.key not in users:
                users[change.key] = None
                self._claims.add(claim)
            elif not uses and change.key in users:
                del users[change.key]
                self._claims.add(claim)

    def _hurry(self, node: str) -> None:
        """Detach soon the volumes of the node that were to be detached late."""
        for attachment in self._world.store.all(_RESOURCE):
            if attachment["spec"]["nodeName"] == node and self._leaving.pop(uid_of(attachment), None) is not None:
                volume = self._world.store.find("persistentvolumes", _volume_name(attachment))
                claim = ((volume or {}).get("spec") or {}).get("claimRef")
                if claim:
                    self._claims.add((claim["namespace"], claim["name"]))

    def run(self) -> bool:
        acted = self._gone.work(self._forget)
        acted = self._claims.work(self._sync) or acted
        return self._attach.work(self._attached) or acted

    def _forget(self, volume: str) -> bool:
        """Remove the attachments of a deleted volume."""
        keys = self._present.pop(volume, {})
        for key in list(keys):
            self._world.store.remove(_RESOURCE, key)
        return bool(keys)

    def _sync(self, claim_key: Key) -> bool:
        """Update the attachments of one claim's volume to the nodes of its pods."""
        claim = self._world.store.at("persistentvolumeclaims", claim_key)
        volume = volume_of(claim, self._world.store) if claim is not None else None
        if volume is None or not volume["spec"].get("csi"):
            return False
        pods = [self._world.store.at("pods", key) for key in self._users.get(claim_key, {})]
        wanted = {str(node_of(pod)): pod for pod in pods if pod is not None}
        acted, elsewhere = False, False
        for key in list(self._present.get(name_of(volume), {})):
            attachment = self._world.store.at(_RESOURCE, key)
            if attachment is None:
                continue
            if wanted.pop(attachment["spec"]["nodeName"], None) is not None:
                self._leaving.pop(uid_of(attachment), None)
            else:
                acted = self._detach(attachment, claim_key) or acted
            elsewhere = self._world.store.at(_RESOURCE, key) is not None or elsewhere
        several = any("Many" in mode for mode in volume["spec"].get("accessModes") or [])
        for node, pod in wanted.items():
            if elsewhere and not several:
                self._refuse(pod, volume)
            else:
                self._create(volume, node)
                acted = elsewhere = True
        return acted

    def _refuse(self, pod: Obj, volume: Obj) -> None:
        why = "Volume is already exclusively attached to one node and can't be attached to another"
        message = f'Multi-Attach error for volume "{name_of(volume)}" {why}'
        self._events.record(pod, "FailedAttachVolume", message, source=_SOURCE, warning=True)

    def _create(self, volume: Obj, node: str) -> None:
        driver = volume["spec"]["csi"]["driver"]
        digest = hashlib.sha256(f"{volume['spec']['csi']['volumeHandle']}{driver}{node}".encode()).hexdigest()
        source = {"persistentVolumeName": name_of(volume)}
        spec = {"attacher": driver, "nodeName": node, "source": source}
        made = self._world.create(_RESOURCE, {"metadata": {"name": f"csi-{digest}"}, "spec": spec})
        key = key_of(made)
        self._world.write_status(_RESOURCE, key, {"attached": False})
        due = self._world.now() + self._world.settings.volume_attach
        self._world.timers.at(due, lambda: self._attach.add(key))

    def _attached(self, key: Key) -> bool:
        return self._world.write_status(_RESOURCE, key, {"attached": True})

    def _detach(self, attachment: Obj, claim_key: Key) -> bool:
        """Plan the detachment, or detach when it is due; a pod that needs the volume before then cancels the plan."""
        uid, now = uid_of(attachment), self._world.now()
        due = self._leaving.get(uid)
        if due is None:
            node = self._world.store.find("nodes", attachment["spec"]["nodeName"])
            settings = self._world.settings
            soon = has_kubelet(node) or is_out_of_service(node)
            due = now + (settings.volume_detach if soon else settings.force_detach)
            self._leaving[uid] = due
            self._world.timers.at(due, lambda: self._claims.add(claim_key))
        if now < due:
            return False
        self._world.delete(_RESOURCE, attachment)
        self._claims.add(claim_key)
        return True


def _volume_name(attachment: Obj) -> str:
    return str(attachment["spec"]["source"].get("persistentVolumeName") or "")
