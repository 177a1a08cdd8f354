"""Taints and tolerations, as `k8s.io/component-helpers/scheduling/corev1` matches them."""

from __future__ import annotations

from local.cluster.objects import Obj

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def tolerates(toleration: Obj, taint: Obj) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(tolerations: list[Obj], taint: Obj) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def taints_of(node: Obj) -> list[Obj]:
    return node.get("spec", {}).get("taints") or []


def tolerations_of(pod: Obj) -> list[Obj]:
    return pod["spec"].get("tolerations") or []


def blocking_taint(
    tolerations: list[Obj], node: Obj, effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
) -> Obj | None:
    """Return the first taint of those effects that is not tolerated."""
    for taint in taints_of(node):
        if taint.get("effect") in effects and not tolerated(tolerations, taint):
            return taint
    return None
