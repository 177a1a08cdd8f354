"""StatefulSets: numbered pods with volumes of their own, started in order, replaced only when the old one is gone.

Rules: `pkg/controller/statefulset/stateful_set_control.go`. Left out: stored revisions, so that a pod below the
partition of an update comes back with the new template; adoption of orphans; deleting claims with their set.
"""

from __future__ import annotations

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    controller_of,
    copied,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    phase_of,
    uid_of,
)
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.world import World

from .deployments import TemplateHashes
from .replicasets import pod_from_template, seconds_until_available
from .worklist import Worklist

_SOURCE = "statefulset-controller"
_REVISION = "controller-revision-hash"


class StatefulSets:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._dirty: Worklist[Key] = Worklist()
        self._hashes = TemplateHashes()

    def observe(self, change: Change) -> None:
        if change.resource == "statefulsets":
            if change.type is ChangeType.DELETED:
                self._hashes.forget(change.obj)
            else:
                self._dirty.add(change.key)
        elif change.resource == "pods":
            owner = controller_of(change.obj)
            if owner is not None and owner["kind"] == "StatefulSet":
                self._dirty.add((change.key[0], owner["name"]))

    def run(self) -> bool:
        return self._dirty.work(self._reconcile)

    def _reconcile(self, key: Key) -> bool:
        wanted = self._world.store.at("statefulsets", key)
        if wanted is None or is_deleting(wanted):
            return False
        acted = self._advance(wanted)
        return self._world.write_status("statefulsets", key, self._status(wanted)) or acted

    def _advance(self, owner: Obj) -> bool:
        """Fill the numbers, then shrink, then update; with ordered management each waits until the one before is
        done.
        """
        pods, first = self._pods(owner), int((owner["spec"].get("ordinals") or {}).get("start", 0))
        numbers = range(first, first + int(owner["spec"]["replicas"]))
        ordered = owner["spec"]["podManagementPolicy"] == "OrderedReady"
        acted, settled = self._fill(owner, pods, numbers, ordered=ordered)
        if ordered and not settled:
            return acted
        surplus = [pods[number] for number in sorted(pods, reverse=True) if number not in numbers]
        shrunk, settled = self._shrink(owner, surplus, ordered=ordered)
        if ordered and not settled:
            return shrunk or acted
        current = [pods[number] for number in numbers if number in pods]
        return self._update(owner, current) or shrunk or acted

    def _pods(self, owner: Obj) -> dict[int, Obj]:
        """Return the pods by number; deleting ones too, because their names are still taken."""
        uid = uid_of(owner)
        owned = self._world.store.owned_by(uid, "pods")
        return {_number(pod): pod for pod in owned if (controller_of(pod) or {}).get("uid") == uid}

    def _fill(self, owner: Obj, pods: dict[int, Obj], numbers: range, *, ordered: bool) -> tuple[bool, bool]:
        """Create missing pods; return (something was done, all numbers exist and are available)."""
        acted, settled = False, True
        for number in numbers:
            pod = pods.get(number)
            if pod is None:
                acted = self._create(owner, number) or acted
            elif is_finished(pod) and not is_deleting(pod):
                acted = self._delete(owner, pod)
            elif not is_deleting(pod) and self._is_available(pod, owner):
                continue
            settled = False
            if ordered:
                break
        return acted, settled

    def _shrink(self, owner: Obj, surplus: list[Obj], *, ordered: bool) -> tuple[bool, bool]:
        """Delete surplus pods from the highest number down; return (something was done, nothing is left over)."""
        acted = False
        for pod in surplus:
            if not is_deleting(pod):
                acted = self._delete(owner, pod)
            if ordered:
                break
        return acted, not surplus

    def _update(self, owner: Obj, pods: list[Obj]) -> bool:
        """Replace one outdated pod at a time, from the highest number down to the partition, past healthy ones only."""
        strategy = owner["spec"]["updateStrategy"]
        if strategy.get("type") == "OnDelete":
            return False
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        revision = self._revision(owner)
        for pod in reversed(pods):
            if _number(pod) < partition:
                return False
            if labels_of(pod).get(_REVISION) != revision and not is_deleting(pod):
                return self._delete(owner, pod)
            if is_deleting(pod) or not _is_running(pod):
                return False
        return False

    def _revision(self, owner: Obj) -> str:
        return f"{name_of(owner)}-{self._hashes.of(owner)}"

    def _create(self, owner: Obj, number: int) -> bool:
        """Create a pod with its claims, which outlive it. A pod of that name with another owner is left unchanged."""
        name, namespace = f"{name_of(owner)}-{number}", namespace_of(owner)
        if self._world.store.find("pods", name, namespace) is not None:
            return False
        claims = {entry["metadata"]["name"]: entry for entry in owner["spec"].get("volumeClaimTemplates") or []}
        for volume, template in claims.items():
            self._claim(owner, template, f"{volume}-{name}")
        pod = pod_from_template(owner)
        del pod["metadata"]["generateName"]
        pod["metadata"]["name"] = name
        identity = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(number)}
        pod["metadata"].setdefault("labels", {}).update(identity, **{_REVISION: self._revision(owner)})
        spec = pod["spec"]
        others = [volume for volume in spec.get("volumes") or [] if volume["name"] not in claims]
        own = [{"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}} for volume in claims]
        spec.update(volumes=[*own, *others], hostname=name, subdomain=owner["spec"].get("serviceName", ""))
        self._world.create("pods", pod, namespace)
        message = f"create Pod {name} in StatefulSet {name_of(owner)} successful"
        self._events.record(owner, "SuccessfulCreate", message, source=_SOURCE)
        return True

    def _claim(self, owner: Obj, template: Obj, name: str) -> None:
        if self._world.store.find("persistentvolumeclaims", name, namespace_of(owner)) is not None:
            return
        metadata = {
            "name": name,
            "labels": {**labels_of(template), **(owner["spec"]["selector"].get("matchLabels") or {})},
            "annotations": copied(template["metadata"].get("annotations") or {}),
        }
        claim = {"metadata": metadata, "spec": copied(template["spec"])}
        self._world.create("persistentvolumeclaims", claim, namespace_of(owner))

    def _delete(self, owner: Obj, pod: Obj) -> bool:
        self._world.delete("pods", pod)
        message = f"delete Pod {name_of(pod)} in StatefulSet {name_of(owner)} successful"
        self._events.record(owner, "SuccessfulDelete", message, source=_SOURCE)
        return True

    def _is_available(self, pod: Obj, owner: Obj) -> bool:
        """Return whether the pod is ready for minReadySeconds; else queue a check at that time."""
        left = seconds_until_available(pod, owner, self._world.now()) if _is_running(pod) else None
        if left:
            key = key_of(owner)
            self._world.timers.at(self._world.now() + left, lambda: self._dirty.add(key))
        return left == 0

    def _status(self, owner: Obj) -> Obj:
        pods, revision = list(self._pods(owner).values()), self._revision(owner)
        lasting = [pod for pod in pods if not is_deleting(pod)]
        updated = [pod for pod in lasting if labels_of(pod).get(_REVISION) == revision]
        ready = sum(map(_is_running, pods))
        wanted = int(owner["spec"]["replicas"])
        before = (owner.get("status") or {}).get("currentRevision", revision)
        complete = len(updated) == len(pods) == ready == wanted
        current = revision if complete else before
        status = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": sum(self._is_available(pod, owner) for pod in pods),
            "currentReplicas": sum(labels_of(pod).get(_REVISION) == current for pod in lasting),
            "updatedReplicas": len(updated),
            "currentRevision": current,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        always = ("replicas", "availableReplicas", "collisionCount")
        return {name: value for name, value in status.items() if value or name in always}


def _is_running(pod: Obj) -> bool:
    return phase_of(pod) == "Running" and is_ready(pod)


def _number(pod: Obj) -> int:
    return int(name_of(pod).rpartition("-")[2])
