"""DaemonSets: one pod on every node that its template tolerates and selects, placed by the scheduler.

A changed template replaces pods one node at a time (maxUnavailable of the real controller is taken as 1); with
`OnDelete` they stay until somebody deletes them.
"""

from __future__ import annotations

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    controller_of,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    node_of,
    uid_of,
)
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.world import World

from .deployments import template_hash
from .fit import matches_node, only_node
from .replicasets import pod_from_template
from .taints import blocking_taint
from .worklist import Worklist

_SOURCE = "daemonset-controller"
_HASH = "controller-revision-hash"
# what the daemon controller adds to every daemon pod (util.AddOrUpdateDaemonPodTolerations)
_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)


class DaemonSets:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._sets: Worklist[Key] = Worklist()

    def observe(self, change: Change) -> None:
        if change.resource == "daemonsets" and change.type is not ChangeType.DELETED:
            self._sets.add(change.key)
        elif change.resource == "pods":
            owner = controller_of(change.obj)
            if owner is not None and owner["kind"] == "DaemonSet":
                self._sets.add((change.key[0], owner["name"]))
        elif change.resource == "nodes" and _matters(change):
            for daemonset in self._world.store.each("daemonsets"):
                self._sets.add(key_of(daemonset))

    def run(self) -> bool:
        return self._sets.work(self._reconcile)

    def _reconcile(self, key: Key) -> bool:
        daemonset = self._world.store.at("daemonsets", key)
        if daemonset is None:
            return False
        acted = False
        if not is_deleting(daemonset):
            acted = self._place(daemonset)
            acted = self._update(daemonset) or acted
        return self._world.change("daemonsets", key, self._set_status) or acted

    def _pods_by_node(self, daemonset: Obj) -> dict[str, list[Obj]]:
        uid, found = uid_of(daemonset), dict[str, list[Obj]]()
        for pod in self._world.store.owned_by(uid, "pods"):
            if (controller_of(pod) or {}).get("uid") == uid:
                found.setdefault(node_of(pod) or only_node(pod) or "", []).append(pod)
        return found

    def _place(self, daemonset: Obj) -> bool:
        by_node, acted = self._pods_by_node(daemonset), False
        probe = _probe(daemonset)
        for node in self._world.store.all("nodes"):
            name = name_of(node)
            present = by_node.get(name, [])
            if not present and _should_run(probe, node, ("NoSchedule", "NoExecute")):
                self._create(daemonset, name)
                acted = True
            elif present and not _should_run(probe, node, ("NoExecute",)):
                acted = self._delete(daemonset, present) or acted
            elif any(is_finished(pod) and not is_deleting(pod) for pod in present):
                acted = self._delete(daemonset, [pod for pod in present if is_finished(pod)]) or acted
        for name, pods in by_node.items():
            if self._world.store.find("nodes", name) is None:
                unbound = [pod for pod in pods if node_of(pod) is None]
                acted = self._delete(daemonset, unbound) or acted
        return acted

    def _create(self, daemonset: Obj, node: str) -> None:
        pod = pod_from_template(daemonset)
        pod["metadata"].setdefault("labels", {})[_HASH] = template_hash(daemonset["spec"]["template"])
        spec = pod["spec"]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = spec.setdefault("affinity", {})
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["tolerations"] = _tolerations(daemonset)
        stored = self._world.create("pods", pod, namespace_of(daemonset))
        self._events.record(daemonset, "SuccessfulCreate", f"Created pod: {name_of(stored)}", source=_SOURCE)

    def _delete(self, daemonset: Obj, pods: list[Obj]) -> bool:
        acted = False
        for pod in pods:
            if not is_deleting(pod):
                self._world.delete("pods", pod)
                self._events.record(daemonset, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}", source=_SOURCE)
                acted = True
        return acted

    def _update(self, daemonset: Obj) -> bool:
        """Take away one outdated pod while all others are ready."""
        if daemonset["spec"]["updateStrategy"].get("type") == "OnDelete":
            return False
        digest = template_hash(daemonset["spec"]["template"])
        pods = [pod for entries in self._pods_by_node(daemonset).values() for pod in entries]
        old = [pod for pod in pods if labels_of(pod).get(_HASH) != digest]
        if not old or not all(is_ready(pod) and not is_deleting(pod) for pod in pods):
            return False
        return self._delete(daemonset, old[:1])

    def _set_status(self, daemonset: Obj) -> None:
        probe = _probe(daemonset)
        digest = template_hash(daemonset["spec"]["template"])
        by_node = self._pods_by_node(daemonset)
        desired = current = ready = updated = 0
        for node in self._world.store.each("nodes"):
            if not _should_run(probe, node, ("NoSchedule", "NoExecute")):
                continue
            desired += 1
            pods = [pod for pod in by_node.get(name_of(node), []) if not is_deleting(pod)]
            current += bool(pods)
            ready += any(map(is_ready, pods))
            updated += any(labels_of(pod).get(_HASH) == digest for pod in pods)
        status = {
            "currentNumberScheduled": current,
            "desiredNumberScheduled": desired,
            "numberMisscheduled": 0,
            "numberReady": ready,
            "observedGeneration": daemonset["metadata"].get("generation", 1),
            "updatedNumberScheduled": updated,
            "numberAvailable": ready,
            "numberUnavailable": desired - ready,
        }
        daemonset["status"] = status


def _tolerations(daemonset: Obj) -> list[Obj]:
    own = daemonset["spec"]["template"]["spec"].get("tolerations") or []
    added = [dict(entry) for entry in _TOLERATIONS]
    if daemonset["spec"]["template"]["spec"].get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        added.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    return [*own, *(entry for entry in added if entry not in own)]


def _probe(daemonset: Obj) -> Obj:
    """A pod of the set as far as placement looks at it."""
    spec = daemonset["spec"]["template"]["spec"]
    return {"metadata": {}, "spec": {**spec, "tolerations": _tolerations(daemonset)}}


def _should_run(probe: Obj, node: Obj, effects: tuple[str, ...]) -> bool:
    return matches_node(probe, node) and blocking_taint(probe["spec"]["tolerations"], node, effects) is None


def _matters(change: Change) -> bool:
    if change.type is not ChangeType.MODIFIED or change.old is None:
        return True
    old, new = change.old, change.obj
    return labels_of(old) != labels_of(new) or old["spec"].get("taints") != new["spec"].get("taints")
