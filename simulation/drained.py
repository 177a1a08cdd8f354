"""Pods that are still on the node of an instance although they could have left. The rules of kubectl drain once more,
over raw objects: a second opinion on the product's own."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from leeward.model.times import as_instant
from leeward.policy.document import DrainPolicy
from local.cluster.objects import Obj, condition_of, controller_of, is_ready, path_name
from local.cluster.selectors import label_selector_matches
from simulation.node_instances import instance_behind
from simulation.view import WorldView

CLOCKS = timedelta(seconds=2)  # by which those of two functions may differ
STUCK = timedelta(seconds=60) - CLOCKS  # past its deletion: the kubelet does not answer, no drain waits for it
JUST_JOINED = timedelta(seconds=10)  # a node that came so late may have been unknown to the drain
MIRROR = "kubernetes.io/config.mirror"


def left_behind(instance: str, view: WorldView, *, asked: bool = True) -> list[str]:
    """Return the pods that could still leave, on the node of an instance that is released; without `asked` only those
    that are not terminating.
    """
    node = node_behind(instance, view)
    return [] if node is None or _came_late(node, instance, view) else still_on(node, view, asked=asked)


def still_on(node: Obj, view: WorldView, *, asked: bool = True) -> list[str]:
    """Return the pods that could still leave the node; without `asked` only those that are not terminating."""
    leaving = [pod for pod in _leaving(node, view) if asked or "deletionTimestamp" not in pod["metadata"]]
    return [path_name(pod) for pod in leaving if not _stuck(pod, node, _instant(view.now))]


def grace_left(node: Obj, view: WorldView) -> bool:
    """Return whether a pod of the node is terminating and its grace is not over."""
    ends = (pod["metadata"].get("deletionTimestamp") for pod in _leaving(node, view))
    return any(as_instant(end) > _instant(view.now) for end in ends if end is not None)


def silent_for(instance: str, view: WorldView) -> float:
    """Return the seconds for which the instance's kubelet has not reported its Node Ready; 0 for a Ready one."""
    node = node_behind(instance, view)
    if node is None or is_ready(node):
        return 0.0
    return view.now - as_instant((condition_of(node, "Ready") or {})["lastTransitionTime"]).timestamp()


def deletable(instance: str, drain: DrainPolicy, view: WorldView) -> bool:
    """Return whether force may delete a pod of the node: not one that the policy keeps, as kubectl without
    `--delete-emptydir-data` and `--force`.
    """
    now, node = _instant(view.now), node_behind(instance, view)
    return node is not None and any(not (_kept(pod, drain) or _stuck(pod, node, now)) for pod in _leaving(node, view))


def untouched(instance: str, since: float, drain: DrainPolicy, view: WorldView) -> list[str]:
    """Return the pods without a budget whose eviction has not begun; none on a node younger than `since`. Pods that the
    policy keeps end with the node. Critical pods leave last, but in time.
    """
    node = node_behind(instance, view)
    if node is None or as_instant(node["metadata"]["creationTimestamp"]) > _instant(since):
        return []
    return [path_name(pod) for pod, budgets in _waiting(node, drain, view) if not budgets]


def evictable(instance: str, drain: DrainPolicy, view: WorldView) -> set[str]:
    """Return the pods whose eviction has not begun although the Eviction API would allow it: no budget selects them, or
    one whose status allows a disruption.
    """
    node = node_behind(instance, view)
    return set() if node is None else evictable_pods(node, drain, view)


def evictable_pods(node: Obj, drain: DrainPolicy, view: WorldView) -> set[str]:
    """Return such pods of a node."""
    waiting = _waiting(node, drain, view)
    return {path_name(pod) for pod, budgets in waiting if len(budgets) < 2 and all(map(_allows, budgets))}


def _waiting(node: Obj, drain: DrainPolicy, view: WorldView) -> Iterator[tuple[Obj, list[Obj]]]:
    """Yield the pods that have to leave and whose eviction has not begun, each with the budgets that select it."""
    budgets = view.cluster.store.all("poddisruptionbudgets")
    for pod in _leaving(node, view):
        if "deletionTimestamp" not in pod["metadata"] and not _kept(pod, drain):
            yield pod, [budget for budget in budgets if _selects(budget, pod)]


def _leaving(node: Obj, view: WorldView) -> Iterator[Obj]:
    for pod in sorted(view.cluster.store.pods_on(node["metadata"]["name"]), key=path_name):
        owners = pod["metadata"].get("ownerReferences") or ()
        of_daemon_set = any(owner.get("kind") == "DaemonSet" for owner in owners)
        finished = (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        if not (of_daemon_set or finished or MIRROR in (pod["metadata"].get("annotations") or {})):
            yield pod


def _kept(pod: Obj, drain: DrainPolicy) -> bool:
    local = any("emptyDir" in volume for volume in pod["spec"].get("volumes") or ())
    unmanaged = controller_of(pod) is None
    return (local and not drain.delete_local_data) or (unmanaged and not drain.evict_unmanaged)


def node_behind(instance: str, view: WorldView) -> Obj | None:
    """Return the Node of the instance by its provider id: names are used again."""
    nodes = view.cluster.store.each("nodes")
    return next((node for node in nodes if instance_behind(node) == instance), None)


def _came_late(node: Obj, instance: str, view: WorldView) -> bool:
    opened = view.open_since.get(instance)
    return opened is not None and as_instant(node["metadata"]["creationTimestamp"]) > _instant(opened) - JUST_JOINED


def _stuck(pod: Obj, node: Obj, now: datetime) -> bool:
    """Return whether no kubelet ends the pod: its deletion is long past, or its grace on a node that is NotReady."""
    deletion = pod["metadata"].get("deletionTimestamp")
    conditions = (node.get("status") or {}).get("conditions") or ()
    ready = not any(one.get("type") == "Ready" and one.get("status") != "True" for one in conditions)
    return deletion is not None and now - as_instant(deletion) > (STUCK if ready else timedelta())


def _allows(budget: Obj) -> bool:
    return int((budget.get("status") or {}).get("disruptionsAllowed", 0)) > 0


def _selects(budget: Obj, pod: Obj) -> bool:
    same = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return same and label_selector_matches(budget["spec"].get("selector"), pod["metadata"].get("labels") or {})


def _instant(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
