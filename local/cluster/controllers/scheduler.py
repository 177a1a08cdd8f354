"""Scheduler: binds pods without a node, one after the other by priority, and reports the reason if it cannot.

The rules are in `local.cluster.scheduling`. Left out: preemption. Among fitting nodes it takes the one that meets most
preferences, then the one with fewest pods of the same owner, then the least requested, then by name, so that the same
input gives the same placement.
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
    labels_of,
    name_of,
    node_of,
    path_name,
    set_condition,
    uid_of,
)
from local.cluster.quantities import held_resources, pod_requests
from local.cluster.scheduling.affinity import AffinityRules, required_terms
from local.cluster.scheduling.devices import ClaimRules, FeatureRules, restarts_all
from local.cluster.scheduling.feasibility import (
    CORDONED,
    PORTS_TAKEN,
    heeds_cordons,
    host_ports,
    only_node,
    ports_clash,
    refusal,
)
from local.cluster.scheduling.scores import Preferences, taint_penalty
from local.cluster.scheduling.spread import SpreadRules, constraints_of
from local.cluster.scheduling.usage import NodeUsage
from local.cluster.scheduling.volumes import VolumeRules
from local.cluster.store import Change, ChangeType, Key
from local.cluster.volumes import ZONE, claim_names, provision
from local.cluster.world import World

_SOURCE = "default-scheduler"
_FEW = 100  # nodes of which every one is checked, as in kube-scheduler
_ENOUGH = 32  # in larger clusters: fitting nodes after which the best so far is taken
_AWAITED = ("persistentvolumeclaims", "persistentvolumes", "storageclasses", "resourceclaims")
_Rules = VolumeRules | SpreadRules | AffinityRules | ClaimRules | FeatureRules


class _Attempt:
    """Scheduling attempt of one pod: its requirements, computed once. Rules that do not apply to it cost nothing."""

    def __init__(self, pod: Obj, world: World, usage: NodeUsage) -> None:
        store, placed = world.store, usage.placed
        self.pod = pod
        self._usage = usage
        self._requests, self._ports = pod_requests(pod), host_ports(pod)
        self.volumes = VolumeRules(pod, store) if claim_names(pod) else None
        rules: list[_Rules] = [self.volumes] if self.volumes is not None else []
        self.problem = self.volumes.problem if self.volumes is not None else None
        if pod["spec"].get("resourceClaims"):
            claims = ClaimRules(pod, store)
            rules.append(claims)
            self.problem = self.problem or claims.problem
        if restarts_all(pod):
            rules.append(FeatureRules())
        if constraints_of(pod, hard=True):
            rules.append(SpreadRules(pod, store, placed))
        affinity = AffinityRules(pod, store, placed, usage.repelling)
        self._rules = [*rules, affinity] if affinity else rules
        soft = pod["spec"].get("affinity") or constraints_of(pod, hard=False)
        self._preferences = Preferences(pod, store, placed) if soft else None
        owner = controller_of(pod)
        self._owner = owner["uid"] if owner else ""

    def refusal(self, node: Obj) -> str | None:
        """Return the reason that the pod does not fit on the node, in the order of the plugins."""
        name = name_of(node)
        why = refusal(self.pod, node, self._requests, self._usage.free(name))
        if why is None and self._ports and ports_clash(self._ports, self._usage.ports(name)):
            why = PORTS_TAKEN
        for rules in self._rules:
            why = why or rules.refusal(node)
        return why

    def score(self, node: Obj) -> tuple[int, int, float, str]:
        """Return the node's score; the lowest is the best."""
        name = name_of(node)
        penalty = taint_penalty(self.pod, node)
        if self._preferences is not None:
            penalty += self._preferences.penalty(node)
        return penalty, self._usage.siblings(name, self._owner), self._usage.requested_share(name), name


class Scheduler:
    def __init__(self, world: World, events: EventRecorder) -> None:
        self._world = world
        self._events = events
        self._usage = NodeUsage()
        self._pending: dict[Key, None] = {}
        self._minding: dict[Key, None] = {}
        self._due: dict[Key, None] = {}
        self._next_node = 0

    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            self._pod_changed(change)
        elif change.resource == "nodes":
            self._usage.observe_node(change)
            self._due.update(self._pending)
        elif change.resource in _AWAITED:
            self._due.update(self._pending)

    def _pod_changed(self, change: Change) -> None:
        if _placement_changed(change):
            self._usage.observe(change)
            freed = change.type is ChangeType.DELETED or is_finished(change.obj) or _is_resized(change)
            if node_of(change.obj):
                self._due.update(self._pending if freed else self._minding)
        waiting = change.type is not ChangeType.DELETED and _is_waiting(change.obj)
        if waiting and change.key in self._pending and _claims_made(change):
            self._due[change.key] = None
        if waiting and change.key not in self._pending:
            self._pending[change.key] = None
            self._due[change.key] = None
            if _minds_others(change.obj):
                self._minding[change.key] = None
        elif not waiting:
            for known in (self._pending, self._minding, self._due):
                known.pop(change.key, None)

    def run(self) -> bool:
        """Try every pod for which something has changed since its last attempt."""
        keys, self._due = list(self._due), {}
        pods = [pod for pod in (self._world.store.at("pods", key) for key in keys) if pod is not None]
        pods.sort(key=lambda pod: -int(pod["spec"].get("priority") or 0))
        acted = False
        for pod in pods:
            acted = self._schedule(pod) or acted
        return acted

    def _schedule(self, pod: Obj) -> bool:
        reasons: Counter[str] = Counter()
        attempt = _Attempt(pod, self._world, self._usage)
        best = None if attempt.problem else self._best_node(attempt, reasons)
        if best is None:
            return self._report(pod, self._message(attempt.problem, reasons))
        if attempt.volumes is not None:
            for claim in attempt.volumes.unbound:
                provision(self._world, claim, labels_of(best)[ZONE])
        self.bind(pod, name_of(best))
        return True

    def bind(self, pod: Obj, node: str) -> None:
        """Put the pod on the node, whether it fits or not."""
        bind(self._world, pod, node)
        self._events.record(pod, "Scheduled", f"Successfully assigned {path_name(pod)} to {node}", source=_SOURCE)

    def _best_node(self, attempt: _Attempt, reasons: Counter[str]) -> Obj | None:
        best: tuple[tuple[int, int, float, str], Obj] | None = None
        feasible, heeds = 0, heeds_cordons(attempt.pod)
        for node in self._candidates(attempt.pod):
            if heeds and node["spec"].get("unschedulable"):  # during an upgrade that is most of them
                reasons[CORDONED] += 1
                continue
            why = attempt.refusal(node)
            if why:
                reasons[why] += 1
                continue
            score = attempt.score(node)
            if best is None or score < best[0]:
                best = (score, node)
            feasible += 1
            if feasible >= _ENOUGH and self._world.store.count("nodes") > _FEW:
                break
        return best[1] if best else None

    def _candidates(self, pod: Obj) -> list[Obj]:
        """Return all nodes, starting where the last search ended, so that a cut-off search does not favour old
        nodes.
        """
        only = only_node(pod)
        if only is not None:
            node = self._world.store.find("nodes", only)
            return [node] if node is not None else []
        nodes = self._world.store.all("nodes")
        if len(nodes) <= _FEW:
            return nodes
        self._next_node = (self._next_node + _ENOUGH) % len(nodes)
        return nodes[self._next_node :] + nodes[: self._next_node]

    def _message(self, problem: str | None, reasons: Counter[str]) -> str:
        total = self._world.store.count("nodes")
        head = f"0/{total} nodes are available: "
        if problem:
            return f"{head}{problem}."
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
    """Return whether the write changes the placement; status writes of a running pod do not."""
    if change.type is not ChangeType.MODIFIED or change.old is None:
        return True
    old, new = change.old, change.obj
    return (
        node_of(old) != node_of(new)
        or is_finished(old) != is_finished(new)
        or is_deleting(old) != is_deleting(new)
        or uid_of(old) != uid_of(new)
        or labels_of(old) != labels_of(new)
        or (old["spec"] is not new["spec"] and old["spec"] != new["spec"])
        or _is_resized(change)
    )


def _is_resized(change: Change) -> bool:
    """Return whether the write changes the amounts that the pod holds on its node."""
    old, new = change.old, change.obj
    if old is None or node_of(new) is None:
        return False
    if not held_resources(old) and not held_resources(new) and old["spec"] == new["spec"]:
        return False
    return pod_requests(old) != pod_requests(new)


def _claims_made(change: Change) -> bool:
    """Return whether the write names claims that were made of the pod's templates."""
    if change.old is None or not change.obj["spec"].get("resourceClaims"):
        return False
    return bool(change.old["status"].get("resourceClaimStatuses") != change.obj["status"].get("resourceClaimStatuses"))


def _minds_others(pod: Obj) -> bool:
    """Return whether the pod has rules about the places of other pods: those may be met when others are added or
    removed.
    """
    return bool(
        constraints_of(pod, hard=True) or required_terms(pod, "podAffinity") or required_terms(pod, "podAntiAffinity")
    )
