"""Reasons that keep Cluster Autoscaler from removing a node: its own rules, at one moment.

Source: Cluster Autoscaler's FAQ, "What types of pods can prevent CA from removing a node?", and its flags' defaults
(skip-nodes-with-system-pods, skip-nodes-with-local-storage)."""

from collections.abc import Iterable, Mapping

from local.cluster.model import Cluster
from local.cluster.objects import (
    Obj,
    annotations_of,
    controller_of,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    path_name,
)
from local.cluster.quantities import pod_requests
from local.cluster.scheduling.feasibility import refusal
from local.cluster.selectors import label_selector_matches
from simulation.emptying import has_to_leave

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def what_keeps(cluster: Cluster, node: Obj) -> str:
    """Return why the node may not be removed, empty when it may; `fit_elsewhere` checks whether its pods fit
    elsewhere.
    """
    if annotations_of(node).get(DISABLED) == "true":
        return "scale-down is disabled"
    if not is_ready(node):
        return "not ready"
    for pod in has_to_leave(cluster, name_of(node)):
        why = "" if is_finished(pod) or is_deleting(pod) else _keeps(cluster, pod)
        if why:
            return f"{path_name(pod)} {why}"
    return ""


def _keeps(cluster: Cluster, pod: Obj) -> str:
    safe = annotations_of(pod).get(SAFE)
    volumes = pod["spec"].get("volumes") or ()
    budgets = [budget for budget in cluster.store.each("poddisruptionbudgets") if _selects(budget, pod)]
    local = any("emptyDir" in volume or "hostPath" in volume for volume in volumes)
    reasons = {
        "is not safe to evict": safe == "false",
        # the real autoscaler searches for capacity in its zone
        "has a volume, which stays in its zone": any("persistentVolumeClaim" in volume for volume in volumes),
        "has no controller": safe != "true" and controller_of(pod) is None,
        "has local storage": safe != "true" and local,
        "is a system pod without a budget": safe != "true" and namespace_of(pod) == "kube-system" and not budgets,
        "has a budget that allows nothing": any(_allows_nothing(budget) for budget in budgets),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _allows_nothing(budget: Obj) -> bool:
    return int((budget.get("status") or {}).get("disruptionsAllowed", 0)) < 1


def _selects(budget: Obj, pod: Obj) -> bool:
    selector = budget["spec"].get("selector")
    return namespace_of(budget) == namespace_of(pod) and label_selector_matches(selector, labels_of(pod))


def fit_elsewhere(pods: Iterable[Obj], nodes: Iterable[Obj], free: Mapping[str, Mapping[str, int]]) -> bool:
    """Return whether each pod fits on one of the nodes with what is left there (thousandths of each resource), all
    together.

    First fit; spreading and affinity between pods are left to the scheduler.
    """
    left = {name: dict(amounts) for name, amounts in free.items()}
    there = [node for node in nodes if is_ready(node) and name_of(node) in left]
    for pod in pods:
        requests = pod_requests(pod)
        target = next((n for n in there if not refusal(pod, n, requests, left[name_of(n)])), None)
        if target is None:
            return False
        take(left[name_of(target)], requests)
    return True


def nodes_needed(pods: Iterable[Obj], template: Obj, allocatable: Mapping[str, int]) -> int:
    """Return how many empty nodes like the template hold those of the pods that could run there at all."""
    bins: list[dict[str, int]] = []
    for pod in pods:
        requests = pod_requests(pod)
        if refusal(pod, template, requests, dict(allocatable)):
            continue
        target = next((left for left in bins if not refusal(pod, template, requests, left)), None)
        if target is None:
            target = dict(allocatable)
            bins.append(target)
        take(target, requests)
    return len(bins)


def take(free: dict[str, int], requests: Mapping[str, int]) -> None:
    """Subtract the requests from the free amounts."""
    for name, amount in requests.items():
        free[name] = free.get(name, 0) - amount
