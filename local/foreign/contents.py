"""Contents of a given cluster: what must not be there before a run, and the removal of what the run has put there."""

from __future__ import annotations

import time
from collections.abc import Iterable

from local.cluster.errors import ApiError
from local.cluster.objects import Obj, name_of, namespace_of
from local.cluster.registry import is_local
from local.foreign.api import ApiClient

SYSTEM = frozenset({"kube-system", "kube-public", "kube-node-lease", "local-path-storage"})
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
_GONE_SECONDS = 12.0


class NotEmptyError(Exception):
    """Error: the cluster is in use; the message names what was found and how to continue."""


def check_empty(api: ApiClient) -> None:
    """Raise NotEmptyError unless the cluster has no nodes but closed control-plane nodes, no pods and no budgets
    outside the system's namespaces, and no roles of Leeward.
    """
    problems = [*_nodes(api), *_namespaced(api, "pods", "/api/v1/pods")]
    problems += _namespaced(api, "PodDisruptionBudgets", "/apis/policy/v1/poddisruptionbudgets")
    problems += _roles(api)
    if problems:
        raise NotEmptyError(
            "the cluster is not empty, and Leeward would act on what is there:\n  " + "\n  ".join(problems)
        )


def remove(api: ApiClient, applied: Iterable[str]) -> None:
    """Delete the applied objects, wait a while for their pods, then delete the local nodes. Idempotent."""
    for path in reversed(list(applied)):
        _delete(api, path)
    until = time.monotonic() + _GONE_SECONDS
    nodes = [node for node in api.call("GET", "/api/v1/nodes")["items"] if is_local(node)]
    names = {name_of(node) for node in nodes}
    while time.monotonic() < until and any(_is_on(pod, names) for pod in api.call("GET", "/api/v1/pods")["items"]):
        time.sleep(0.2)
    for node in nodes:
        _delete(api, f"/api/v1/nodes/{name_of(node)}")
        _delete(api, f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name_of(node)}")


def _is_on(pod: Obj, nodes: set[str]) -> bool:
    return pod["spec"].get("nodeName") in nodes and namespace_of(pod) not in SYSTEM


def _delete(api: ApiClient, path: str) -> None:
    try:
        api.call("DELETE", path, {"propagationPolicy": "Background"})
    except ApiError as refused:
        if refused.code != 404:
            raise


def _nodes(api: ApiClient) -> list[str]:
    problems = []
    for node in api.call("GET", "/api/v1/nodes")["items"]:
        name, spec = name_of(node), node["spec"]
        closed = spec.get("unschedulable") or any(taint["effect"] in _KEEPS_AWAY for taint in spec.get("taints") or ())
        if _CONTROL_PLANE not in (node["metadata"].get("labels") or {}):
            problems.append(f"node {name}: kubectl delete node {name}, if a killed run has left it there")
        elif not closed:
            problems.append(f"control-plane node {name} takes pods: kubectl cordon {name}")
    return problems


def _namespaced(api: ApiClient, kind: str, path: str) -> list[str]:
    spaces = {str(namespace_of(item)) for item in api.call("GET", path)["items"]} - SYSTEM
    return [f"{kind} in namespace {space}" for space in sorted(spaces)]


def _roles(api: ApiClient) -> list[str]:
    roles = api.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")["items"]
    return [f"ClusterRole {name_of(role)}" for role in roles if name_of(role).startswith("leeward")]
