"""The scheduler: binds pods without a node, one after the other by priority, and says why it cannot.

Left out: preemption, soft preferences (scores), gates. Among fitting nodes it takes the one with fewest pods of the
same owner, then the least requested, then by name, so that the same input gives the same placement.
"""

from __future__ import annotations

from collections import Counter

from local.cluster.event_recorder import EventRecorder
from local.cluster.objects import (
    Obj,
    condition_of,
    controller_of,
    is_deleting,
    is_finished,
    name_of,
    node_of,
    path_name,
    set_condition,
    uid_of,
)
from local.cluster.quantities import pod_requests
from local.cluster.store import Change, ChangeType, Key
from local.cluster.world import World

from .fit import allocatable_of, missing_claim, only_node, refusal, term_matches, volume_terms
from .spread import SpreadRules, has_anti_affinity, needs_counting

_SOURCE = "default-scheduler"
_FEW = 100  # nodes of which every one is looked at, as kube-scheduler does
_ENOUGH = 32  # in larger clusters: fitting nodes after which the best so far is taken


class NodeUsage:
    """What each node has left, kept up to date write by write, in thousandths of each resource."""

    def __init__(self) -> None:
        self.owners: dict[str, Counter[str]] = {}
        self.anti_affine: dict[Key, Obj] = {}
        self._used: dict[str, dict[str, int]] = {}
        self._allocatable: dict[str, dict[str, int]] = {}
        self._free: dict[str, dict[str, int]] = {}

    def free(self, node: str) -> dict[str, int]:
        """Allocatable less reserved, by resource."""
        found = self._free.get(node)
        if found is None:
            used = self._used.get(node, {})
            allocatable = self._allocatable.get(node, {})
            found = {name: amount - used.get(name, 0) for name, amount in allocatable.items()}
            self._free[node] = found
        return found

    def requested_share(self, node: str) -> float:
        """How full the node is: the shares of cpu and memory that are reserved, added up."""
        allocatable, free = self._allocatable.get(node, {}), self.free(node)
        total = 0.0
        for name in ("cpu", "memory"):
            if allocatable.get(name):
                total += 1 - free[name] / allocatable[name]
        return total

    def siblings(self, node: str, owner: str) -> int:
        counts = self.owners.get(node)
        return counts[owner] if counts is not None else 0

    def observe_node(self, change: Change) -> None:
        name = name_of(change.obj)
        self._free.pop(name, None)
        if change.type is ChangeType.DELETED:
            self._allocatable.pop(name, None)
        else:
            self._allocatable[name] = allocatable_of(change.obj)

    def observe(self, change: Change) -> None:
        if change.old is not None and _counts(change.old):
            self._add(change.old, -1)
            self.anti_affine.pop(change.key, None)
        if change.type is not ChangeType.DELETED and _counts(change.obj):
            self._add(change.obj, 1)
            if has_anti_affinity(change.obj):
                self.anti_affine[change.key] = change.obj

    def _add(self, pod: Obj, sign: int) -> None:
        node = str(node_of(pod))
        used = self._used.setdefault(node, {})
        self._free.pop(node, None)
        for name, amount in pod_requests(pod).items():
            used[name] = used.get(name, 0) + sign * amount
        owner = controller_of(pod)
        if owner is not None:
            self.owners.setdefault(node, Counter())[owner["uid"]] += sign


def _counts(pod: Obj) -> bool:
    return node_of(pod) is not None and not is_finished(pod)


class Scheduler:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._usage = NodeUsage()
        self._pending: dict[Key, None] = {}
        self._due: dict[Key, None] = {}
        self._next_node = 0

    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            self._pod_changed(change)
        elif change.resource in ("nodes", "persistentvolumeclaims", "persistentvolumes"):
            if change.resource == "nodes":
                self._usage.observe_node(change)
            self._due.update(self._pending)

    def _pod_changed(self, change: Change) -> None:
        if _placement_changed(change):
            self._usage.observe(change)
            if node_of(change.obj) and change.type is ChangeType.DELETED:
                self._due.update(self._pending)
        waiting = change.type is not ChangeType.DELETED and _is_waiting(change.obj)
        if waiting and change.key not in self._pending:
            self._pending[change.key] = None
            self._due[change.key] = None
        elif not waiting:
            self._pending.pop(change.key, None)
            self._due.pop(change.key, None)

    def run(self) -> bool:
        """Try every pod for which something has changed since it was tried last."""
        keys, self._due = list(self._due), {}
        pods = [pod for pod in (self._world.store.at("pods", key) for key in keys) if pod is not None]
        pods.sort(key=lambda pod: -int(pod["spec"].get("priority") or 0))
        acted = False
        for pod in pods:
            acted = self._schedule(pod) or acted
        return acted

    def _schedule(self, pod: Obj) -> bool:
        reasons: Counter[str] = Counter()
        best = self._best_node(pod, reasons)
        if best is None:
            return self._report(pod, self._message(pod, reasons))
        self.bind(pod, best)
        return True

    def bind(self, pod: Obj, node: str) -> None:
        """Put the pod on the node, whether it fits or not."""
        bind(self._world, pod, node)
        self._events.record(pod, "Scheduled", f"Successfully assigned {path_name(pod)} to {node}", source=_SOURCE)

    def _best_node(self, pod: Obj, reasons: Counter[str]) -> str | None:
        if missing_claim(pod, self._world.store):
            return None
        requests, volumes = pod_requests(pod), volume_terms(pod, self._world.store)
        rules = self._rules(pod)
        best: tuple[int, float, str] | None = None
        feasible = 0
        for node in self._candidates(pod):
            name = name_of(node)
            why = refusal(pod, node, requests, self._usage.free(name)) or (rules and rules.refusal(node))
            if not why and not all(any(term_matches(term, node) for term in terms) for terms in volumes):
                why = "node(s) had volume node affinity conflict"
            if why:
                reasons[why] += 1
                continue
            score = self._score(pod, name)
            best = min(best, score) if best else score
            feasible += 1
            if feasible >= _ENOUGH and self._world.store.count("nodes") > _FEW:
                break
        return best[2] if best else None

    def _rules(self, pod: Obj) -> SpreadRules | None:
        if not needs_counting(pod) and not self._usage.anti_affine:
            return None
        return SpreadRules(pod, self._world.store, list(self._usage.anti_affine.values()))

    def _candidates(self, pod: Obj) -> list[Obj]:
        """All nodes, starting where the last search ended, so that a cut-off search does not favour old nodes."""
        only = only_node(pod)
        if only is not None:
            node = self._world.store.find("nodes", only)
            return [node] if node is not None else []
        nodes = self._world.store.all("nodes")
        if len(nodes) <= _FEW:
            return nodes
        self._next_node = (self._next_node + _ENOUGH) % len(nodes)
        return nodes[self._next_node :] + nodes[: self._next_node]

    def _score(self, pod: Obj, node: str) -> tuple[int, float, str]:
        owner = controller_of(pod)
        siblings = self._usage.siblings(node, owner["uid"]) if owner else 0
        return siblings, self._usage.requested_share(node), node

    def _message(self, pod: Obj, reasons: Counter[str]) -> str:
        claim = missing_claim(pod, self._world.store)
        total = self._world.store.count("nodes")
        head = f"0/{total} nodes are available: "
        if claim:
            return f'{head}persistentvolumeclaim "{claim}" not found.'
        if total == 0:
            return "no nodes available to schedule pods"
        return head + ", ".join(f"{count} {why}" for why, count in sorted(reasons.items())) + "."

    def _report(self, pod: Obj, message: str) -> bool:
        before = condition_of(pod, "PodScheduled")
        if before is not None and before.get("message") == message:
            return False
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        condition["lastTransitionTime"] = self._world.timestamp()
        key = (pod["metadata"]["namespace"], name_of(pod))
        self._world.change("pods", key, lambda entry: set_condition(entry["status"], condition))
        self._events.record(pod, "FailedScheduling", message, source=_SOURCE, warning=True)
        return True


def bind(world: World, pod: Obj, node: str) -> None:
    """Write nodeName and the PodScheduled condition, as the binding subresource does."""

    def edit(entry: Obj) -> None:
        entry["spec"]["nodeName"] = node
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": world.timestamp()}
        conditions = entry["status"].get("conditions") or []
        entry["status"]["conditions"] = [c for c in conditions if c["type"] != "PodScheduled"]
        set_condition(entry["status"], condition)

    world.change("pods", (pod["metadata"]["namespace"], name_of(pod)), edit)


def _is_waiting(pod: Obj) -> bool:
    scheduler = pod["spec"].get("schedulerName", "default-scheduler")
    gated = bool(pod["spec"].get("schedulingGates"))
    return node_of(pod) is None and not is_deleting(pod) and not is_finished(pod) and not gated and scheduler == _SOURCE


def _placement_changed(change: Change) -> bool:
    """Status writes of a running pod do not move anything."""
    if change.type is not ChangeType.MODIFIED or change.old is None:
        return True
    old, new = change.old, change.obj
    return (
        node_of(old) != node_of(new)
        or is_finished(old) != is_finished(new)
        or uid_of(old) != uid_of(new)
        or (old["spec"] is not new["spec"] and old["spec"] != new["spec"])
    )
