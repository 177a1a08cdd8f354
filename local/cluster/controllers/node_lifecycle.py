"""Node lifecycle: taints that follow conditions, pods of failing nodes turn not ready, NoExecute taints evict.

This module does not decide that a node fails: a client or the node bridge writes its Ready condition.
"""

from __future__ import annotations

from local.cluster.event_recorder import EventRecorder
from local.cluster.history import Cause
from local.cluster.objects import (
    Obj,
    annotations_of,
    condition_of,
    is_deleting,
    is_ready,
    name_of,
    node_of,
    phase_of,
    set_condition,
    uid_of,
)
from local.cluster.scheduling.taints import NOT_READY, UNREACHABLE, UNSCHEDULABLE, taints_of, tolerates, tolerations_of
from local.cluster.settings import NEVER_READY
from local.cluster.store import Change, ChangeType, Key, key_of
from local.cluster.world import World

from .worklist import Worklist

_OWN = (UNSCHEDULABLE, NOT_READY, UNREACHABLE)


class NodeLifecycle:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._nodes: Worklist[str] = Worklist()
        self._turned: Worklist[str] = Worklist()
        self._evictions: Worklist[tuple[Key, str]] = Worklist()
        self._tainted_since: dict[tuple[str, str, str], float] = {}

    def observe(self, change: Change) -> None:
        if change.resource == "nodes":
            self._node_changed(change)
        elif change.resource == "pods" and change.type is not ChangeType.DELETED:
            node = node_of(change.obj)
            if node is not None and (change.old is None or node_of(change.old) is None):
                self._nodes.add(node)

    def _node_changed(self, change: Change) -> None:
        name = name_of(change.obj)
        if change.type is ChangeType.DELETED:
            for since in [key for key in self._tainted_since if key[0] == name]:
                del self._tainted_since[since]
            return
        self._nodes.add(name)
        if change.old is not None and is_ready(change.old) != is_ready(change.obj):
            self._turned.add(name)

    def run(self) -> bool:
        acted = self._nodes.work(self._sync_taints)
        acted = self._turned.work(self._sync_pods) or acted
        return self._evictions.work(self._evict) or acted

    def _sync_taints(self, name: str) -> bool:
        node = self._world.store.find("nodes", name)
        if node is None:
            return False
        wanted = _wanted_taints(node)
        kept = [t for t in taints_of(node) if t.get("key") not in _OWN or _same(t, wanted)]
        missing = [taint for taint in wanted if not _same(taint, kept)]
        taints = [*kept, *({**taint, "timeAdded": self._world.timestamp()} for taint in missing)]
        changed = self._world.change("nodes", key_of(node), lambda entry: _set_taints(entry, taints))
        self._plan_evictions(self._world.find("nodes", name))
        return changed

    def _plan_evictions(self, node: Obj) -> None:
        """Plan the eviction of pods: a pod is evicted when the shortest of its tolerations for the node's NoExecute
        taints expires.
        """
        name = name_of(node)
        taints = [taint for taint in taints_of(node) if taint.get("effect") == "NoExecute"]
        present = {(name, taint["key"], taint.get("value") or "") for taint in taints}
        for gone in [key for key in self._tainted_since if key[0] == name and key not in present]:
            del self._tainted_since[gone]
        for key in sorted(present):
            self._tainted_since.setdefault(key, self._world.now())
        for pod in self._world.store.pods_on(name) if taints else []:
            due = self._eviction_due(pod, taints)
            if due is not None and not is_deleting(pod):
                self._plan(pod, due)

    def _plan(self, pod: Obj, due: float) -> None:
        entry = (key_of(pod), uid_of(pod))
        if due <= self._world.now():
            self._evictions.add(entry)
        else:
            self._world.timers.at(due, lambda: self._evictions.add(entry))

    def _eviction_due(self, pod: Obj, taints: list[Obj]) -> float | None:
        node, dues = node_of(pod) or "", []
        for taint in taints:
            since = self._tainted_since.get((node, taint["key"], taint.get("value") or ""), self._world.now())
            matching = [entry for entry in tolerations_of(pod) if tolerates(entry, taint)]
            if not matching:
                return since
            limits = [entry["tolerationSeconds"] for entry in matching if entry.get("tolerationSeconds") is not None]
            if limits:
                dues.append(since + max(0, min(limits)))
        return min(dues, default=None)

    def _evict(self, entry: tuple[Key, str]) -> bool:
        key, uid = entry
        pod = self._world.store.at("pods", key)
        node = self._world.store.find("nodes", node_of(pod) or "") if pod is not None else None
        if pod is None or node is None or uid_of(pod) != uid or is_deleting(pod):
            return False
        due = self._eviction_due(pod, [taint for taint in taints_of(node) if taint.get("effect") == "NoExecute"])
        if due is None or due > self._world.now():
            return False
        message = f"Marking for deletion Pod {key[0]}/{key[1]}"
        self._events.record(pod, "TaintManagerEviction", message, source="taint-eviction-controller")
        with self._world.because(Cause.NODE_LOSS):
            self._world.delete("pods", pod)
        return True

    def _sync_pods(self, name: str) -> bool:
        node = self._world.store.find("nodes", name)
        if node is None:
            return False
        ready = is_ready(node)
        self._events.record_readiness(node)
        with self._world.because(Cause.NODE_LOSS):
            for pod in self._world.store.pods_on(name):
                if phase_of(pod) == "Running" and annotations_of(pod).get(NEVER_READY) != "true":
                    self._world.change("pods", key_of(pod), lambda entry: self._set_ready(entry, ready=ready))
        return True

    def _set_ready(self, pod: Obj, *, ready: bool) -> None:
        if is_ready(pod) != ready:
            status = {"type": "Ready", "status": "True" if ready else "False"}
            set_condition(pod["status"], {**status, "lastTransitionTime": self._world.timestamp()})


def _wanted_taints(node: Obj) -> list[Obj]:
    """Return the taints that the cordon and the Ready condition require (TaintNodesByCondition and the NoExecute
    manager).
    """
    wanted: list[Obj] = []
    if node.get("spec", {}).get("unschedulable"):
        wanted.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
    condition = condition_of(node, "Ready") or {"status": "Unknown"}
    if condition["status"] != "True":
        key = NOT_READY if condition["status"] == "False" else UNREACHABLE
        wanted += [{"key": key, "effect": "NoSchedule"}, {"key": key, "effect": "NoExecute"}]
    return wanted


def _same(taint: Obj, taints: list[Obj]) -> bool:
    return any((entry.get("key"), entry.get("effect")) == (taint.get("key"), taint.get("effect")) for entry in taints)


def _set_taints(node: Obj, taints: list[Obj]) -> None:
    if taints:
        node["spec"]["taints"] = taints
    else:
        node["spec"].pop("taints", None)
