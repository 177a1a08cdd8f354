"""DaemonSets: one pod on every node that its template tolerates and selects, placed by the scheduler.

A changed template replaces pods one node at a time (maxUnavailable of the real controller is taken as 1); with
`OnDelete` they stay until a client deletes them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

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
from local.cluster.scheduling.feasibility import matches_node, only_node
from local.cluster.scheduling.taints import blocking_taint
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.world import World

from .deployments import TemplateHashes
from .replicasets import pod_from_template
from .worklist import Worklist

_SOURCE = "daemonset-controller"
_HASH = "controller-revision-hash"
# tolerations that the daemon controller adds to every daemon pod (util.AddOrUpdateDaemonPodTolerations)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeTally:
    """State of one node for one set; booleans count as numbers in the status."""

    desired: bool
    current: bool
    ready: bool
    updated: bool
    settled: bool


_NUMBERS = ("desired", "current", "ready", "updated", "settled")


class _Standing:
    """State of one set on all nodes: sums that are updated node by node, because a cluster has many nodes."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.nodes: dict[str, _NodeTally] = {}

    def note(self, node: str, tally: _NodeTally | None) -> None:
        before = self.nodes.pop(node, None)
        for name in _NUMBERS:
            self.sums[name] += (tally is not None and getattr(tally, name)) - (
                before is not None and getattr(before, name)
            )
        if tally is not None:
            self.nodes[node] = tally


class DaemonSets:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._places: Worklist[tuple[Key, str]] = Worklist()
        self._sets: Worklist[Key] = Worklist()
        self._standing: dict[Key, _Standing] = {}
        self._pods: dict[tuple[str, str], dict[Key, None]] = {}
        self._hashes = TemplateHashes()

    def observe(self, change: Change) -> None:
        if change.resource == "daemonsets":
            self._set_changed(change)
        elif change.resource == "pods":
            self._pod_changed(change)
        elif change.resource == "nodes" and _matters(change):
            for daemonset in self._world.store.each("daemonsets"):
                self._places.add((key_of(daemonset), name_of(change.obj)))

    def _set_changed(self, change: Change) -> None:
        if change.type is ChangeType.DELETED:
            self._standing.pop(change.key, None)
            self._hashes.forget(change.obj)
        elif change.old is None or change.old["spec"] != change.obj["spec"]:
            self._sets.add(change.key)
            for node in self._world.store.each("nodes"):
                self._places.add((change.key, name_of(node)))

    def _pod_changed(self, change: Change) -> None:
        owner = controller_of(change.obj)
        if owner is None or owner["kind"] != "DaemonSet":
            return
        node = node_of(change.obj) or only_node(change.obj) or ""
        place = (owner["uid"], node)
        pods = self._pods.setdefault(place, {})
        if change.type is not ChangeType.DELETED:
            pods[change.key] = None
        elif pods.pop(change.key, None) is None and not pods:
            del self._pods[place]
        self._places.add(((change.key[0], owner["name"]), node))

    def run(self) -> bool:
        acted = self._places.work(self._place)
        return self._sets.work(self._finish) or acted

    def _living(self, key: Key) -> Obj | None:
        daemonset = self._world.store.at("daemonsets", key)
        return daemonset if daemonset is not None and not is_deleting(daemonset) else None

    def _pods_on(self, daemonset: Obj, node: str) -> list[Obj]:
        keys = self._pods.get((uid_of(daemonset), node), {})
        return [pod for pod in (self._world.store.at("pods", key) for key in keys) if pod is not None]

    def _place(self, place: tuple[Key, str]) -> bool:
        """Reconcile one node of one set."""
        key, name = place
        daemonset = self._living(key)
        if daemonset is None:
            return False
        self._sets.add(key)
        node = self._world.store.find("nodes", name)
        pods, probe = self._pods_on(daemonset, name), _probe(daemonset)
        acted = False
        if node is None:
            acted = self._delete(daemonset, [pod for pod in pods if node_of(pod) is None])
        elif not pods:
            if _should_run(probe, node, ("NoSchedule", "NoExecute")):
                self._create(daemonset, name)
                acted = True
        elif not _should_run(probe, node, ("NoExecute",)):
            acted = self._delete(daemonset, pods)
        else:
            acted = self._delete(daemonset, [pod for pod in pods if is_finished(pod)])
        self._note(daemonset, name, probe)
        return acted

    def _note(self, daemonset: Obj, name: str, probe: Obj) -> None:
        standing = self._standing.setdefault(key_of(daemonset), _Standing())
        node = self._world.store.find("nodes", name)
        if node is None:
            standing.note(name, None)
            return
        digest = self._hashes.of(daemonset)
        pods = self._pods_on(daemonset, name)
        lasting = [pod for pod in pods if not is_deleting(pod)]
        tally = _NodeTally(
            desired=_should_run(probe, node, ("NoSchedule", "NoExecute")),
            current=bool(lasting),
            ready=any(map(is_ready, lasting)),
            updated=any(labels_of(pod).get(_HASH) == digest for pod in lasting),
            settled=len(lasting) == len(pods) and all(map(is_ready, pods)),
        )
        standing.note(name, tally)

    def _finish(self, key: Key) -> bool:
        """Reconcile the set as a whole: one step of an update, and its status."""
        daemonset = self._living(key)
        if daemonset is None:
            return False
        standing = self._standing.setdefault(key, _Standing())
        updated = self._update(daemonset, standing)
        return self._world.write_status("daemonsets", key, _status(daemonset, standing.sums)) or updated

    def _create(self, daemonset: Obj, node: str) -> None:
        pod = pod_from_template(daemonset)
        pod["metadata"].setdefault("labels", {})[_HASH] = self._hashes.of(daemonset)
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

    def _update(self, daemonset: Obj, standing: _Standing) -> bool:
        """Delete one outdated pod while every node is settled."""
        if daemonset["spec"]["updateStrategy"].get("type") == "OnDelete":
            return False
        sums = standing.sums
        if sums["updated"] >= sums["current"] or sums["settled"] < len(standing.nodes):
            return False
        name = next(node for node, tally in standing.nodes.items() if tally.current and not tally.updated)
        return self._delete(daemonset, self._pods_on(daemonset, name))


def _status(daemonset: Obj, sums: Counter[str]) -> Obj:
    desired, ready = sums["desired"], sums["ready"]
    return {
        "currentNumberScheduled": sums["current"],
        "desiredNumberScheduled": desired,
        "numberMisscheduled": 0,
        "numberReady": ready,
        "observedGeneration": daemonset["metadata"].get("generation", 1),
        "updatedNumberScheduled": sums["updated"],
        "numberAvailable": ready,
        "numberUnavailable": max(0, desired - ready),
    }


def _tolerations(daemonset: Obj) -> list[Obj]:
    own = daemonset["spec"]["template"]["spec"].get("tolerations") or []
    added = [dict(entry) for entry in _TOLERATIONS]
    if daemonset["spec"]["template"]["spec"].get("hostNetwork"):
        key = "node.kubernetes.io/network-unavailable"
        added.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    return [*own, *(entry for entry in added if entry not in own)]


def _probe(daemonset: Obj) -> Obj:
    """Return a pod of the set as far as placement reads it."""
    spec = daemonset["spec"]["template"]["spec"]
    return {"metadata": {}, "spec": {**spec, "tolerations": _tolerations(daemonset)}}


def _should_run(probe: Obj, node: Obj, effects: tuple[str, ...]) -> bool:
    return matches_node(probe, node) and blocking_taint(probe["spec"]["tolerations"], node, effects) is None


def _matters(change: Change) -> bool:
    if change.type is not ChangeType.MODIFIED or change.old is None:
        return True
    old, new = change.old, change.obj
    return labels_of(old) != labels_of(new) or old["spec"].get("taints") != new["spec"].get("taints")
