"""ReplicaSets: as many active pods as requested; deleting and finished pods do not count."""

from __future__ import annotations

from collections import Counter

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    annotations_of,
    condition_of,
    controller_of,
    copied,
    is_deleting,
    is_finished,
    is_ready,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.timestamps import parsed
from local.cluster.world import World

from .worklist import Worklist

_SOURCE = "replicaset-controller"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSets:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._dirty: Worklist[Key] = Worklist()

    def observe(self, change: Change) -> None:
        if change.resource == "replicasets" and change.type is not ChangeType.DELETED:
            self._dirty.add(change.key)
        elif change.resource == "pods":
            owner = controller_of(change.obj)
            if owner is not None and owner["kind"] == "ReplicaSet":
                self._dirty.add((change.key[0], owner["name"]))

    def run(self) -> bool:
        return self._dirty.work(self._reconcile)

    def _reconcile(self, key: Key) -> bool:
        replicaset = self._world.store.at("replicasets", key)
        if replicaset is None:
            return False
        pods = active_pods(self._world, replicaset)
        wanted = int(replicaset["spec"].get("replicas", 1))
        acted = False
        if not is_deleting(replicaset):
            if len(pods) < wanted:
                self._create(replicaset, wanted - len(pods))
            elif len(pods) > wanted:
                self._delete(replicaset, pods, len(pods) - wanted)
            acted = len(pods) != wanted
        return self._write_status(key) or acted

    def _create(self, replicaset: Obj, count: int) -> None:
        for _ in range(count):
            pod = self._world.create("pods", pod_from_template(replicaset), namespace_of(replicaset))
            self._events.record(replicaset, "SuccessfulCreate", f"Created pod: {name_of(pod)}", source=_SOURCE)

    def _delete(self, replicaset: Obj, pods: list[Obj], count: int) -> None:
        on_node = Counter(node_of(pod) for pod in pods)
        for pod in sorted(pods, key=lambda pod: _deletion_rank(pod, on_node))[:count]:
            self._world.delete("pods", pod)
            self._events.record(replicaset, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}", source=_SOURCE)

    def _write_status(self, key: Key) -> bool:
        replicaset = self._world.store.at("replicasets", key)
        return replicaset is not None and self._world.write_status("replicasets", key, self._status(replicaset))

    def _status(self, replicaset: Obj) -> Obj:
        pods = active_pods(self._world, replicaset)
        available = sum(self._available(pod, replicaset) for pod in pods)
        status = {
            "replicas": len(pods),
            "fullyLabeledReplicas": len(pods),
            "readyReplicas": sum(map(is_ready, pods)),
            "availableReplicas": available,
            "observedGeneration": replicaset["metadata"].get("generation", 1),
        }
        return {name: value for name, value in status.items() if value or name == "replicas"}

    def _available(self, pod: Obj, replicaset: Obj) -> bool:
        """Return whether the pod is ready for minReadySeconds; else queue a check at that time."""
        left = seconds_until_available(pod, replicaset, self._world.now())
        if left:
            key = key_of(replicaset)
            self._world.timers.at(self._world.now() + left, lambda: self._dirty.add(key))
        return left == 0


def seconds_until_available(pod: Obj, owner: Obj, now: float) -> float | None:
    """Return how long the pod must stay ready until its owner's minReadySeconds have passed; None for a pod that is not
    ready.
    """
    condition = condition_of(pod, "Ready")
    if condition is None or condition["status"] != "True":
        return None
    minimum = int(owner["spec"].get("minReadySeconds") or 0)
    if minimum == 0:
        return 0.0
    return max(0.0, parsed(condition["lastTransitionTime"]) + minimum - now)


def active_pods(world: World, owner: Obj) -> list[Obj]:
    """Return the pods that the owner controls and that are neither finished nor deleting."""
    uid = uid_of(owner)
    return [
        pod
        for pod in world.store.owned_by(uid, "pods")
        if not is_deleting(pod) and not is_finished(pod) and (controller_of(pod) or {}).get("uid") == uid
    ]


def owner_reference(owner: Obj) -> Obj:
    kind = owner["kind"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(owner: Obj) -> Obj:
    """Return a new pod of a workload, named after it, with a random suffix."""
    template = owner["spec"]["template"]
    metadata: Obj = {"generateName": f"{name_of(owner)}-", "ownerReferences": [owner_reference(owner)]}
    for key in ("labels", "annotations", "finalizers"):
        if (template.get("metadata") or {}).get(key):
            metadata[key] = copied(template["metadata"][key])
    return {"metadata": metadata, "spec": copied(template["spec"])}


def _deletion_rank(pod: Obj, on_node: Counter[str | None]) -> tuple[object, ...]:
    """Return the rank in the order of deletion: Kubernetes' ActivePodsWithRanks, ties by name."""
    cost = int(annotations_of(pod).get(_DELETION_COST, "0") or 0)
    created = parsed(pod["metadata"]["creationTimestamp"])
    return (node_of(pod) is not None, is_ready(pod), cost, -on_node[node_of(pod)], -created, name_of(pod))
