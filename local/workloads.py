"""Writing of objects to the local cluster's API, as `kubectl apply` does, where no kubectl is installed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from local.stack import ROOT, LocalStack

PLURALS: Mapping[str, str] = MappingProxyType(
    {
        "ClusterRole": "clusterroles",
        "ClusterRoleBinding": "clusterrolebindings",
        "DaemonSet": "daemonsets",
        "Deployment": "deployments",
        "PodDisruptionBudget": "poddisruptionbudgets",
    }
)
CLUSTER_WIDE = frozenset({"ClusterRole", "ClusterRoleBinding"})
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


def apply_objects(stack: LocalStack, objects: Sequence[Mapping[str, Any]]) -> None:
    """Apply the objects server-side, one after the other. Idempotent. Raises LocalStackError with the API's answer,
    KeyError for a kind that `PLURALS` lacks.
    """
    for thing in objects:
        stack.kubernetes("PATCH", f"{path_of(thing)}?fieldManager=local&force=true", thing, kind=APPLY)


def apply_roles(stack: LocalStack) -> None:
    """Apply the ClusterRoles that a user applies once with `kubectl apply -f manifests/`."""
    for file in sorted((ROOT / "manifests").glob("*.yaml")):
        apply_objects(stack, read(file))


def merge(stack: LocalStack, kind: str, name: str, change: Mapping[str, Any]) -> None:
    """Change an object of the namespace `default`, as `kubectl patch --type=merge` and `kubectl scale` do."""
    api = "policy/v1" if kind == "PodDisruptionBudget" else "apps/v1"
    thing = {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "default"}}
    stack.kubernetes("PATCH", path_of(thing), change, kind=MERGE)


def read(file: Path) -> list[Mapping[str, Any]]:
    """Return the documents of a YAML file."""
    return [document for document in yaml.safe_load_all(file.read_text(encoding="utf-8")) if document]


def path_of(thing: Mapping[str, Any]) -> str:
    """Return the object's path in the API. A namespaced object without a namespace is one of `default`."""
    version, kind, metadata = str(thing["apiVersion"]), str(thing["kind"]), thing["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = "" if kind in CLUSTER_WIDE else f"/namespaces/{metadata.get('namespace', 'default')}"
    return f"{root}{space}/{PLURALS[kind]}/{metadata['name']}"
