"""Server-side printing: the Table that `kubectl get` asks for, with the columns of the real printers.

Columns with priority 1 are shown by `-o wide` only. What has no printer here gets Name and Age.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.cluster.objects import Obj, condition_of, is_deleting, labels_of, name_of, node_of, phase_of
from local.cluster.timestamps import parsed, short_age

_NONE = "<none>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    value: Callable[[Obj, float], Any]  # (object, now in seconds since 1970)
    wide: bool = False


def table(resource: str, objects: list[Obj], *, now: float, metadata: Obj, header: bool = True, rows: str = "") -> Obj:
    """`rows` is the request's includeObject: Metadata (default), Object or None."""
    columns = _PRINTERS.get(resource, (_NAME, _AGE))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns] if header else [],
        "rows": [_row(obj, columns, now, rows) for obj in objects],
    }


def _definition(column: Column) -> Obj:
    return {
        "name": column.name,
        "type": "string",
        "format": "name" if column.name == "Name" else "",
        "description": column.name,
        "priority": int(column.wide),
    }


def _row(obj: Obj, columns: tuple[Column, ...], now: float, include: str) -> Obj:
    row: Obj = {"cells": [column.value(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        }
    return row


def _age(obj: Obj, now: float) -> str:
    created = obj["metadata"].get("creationTimestamp")
    return short_age(now - parsed(created)) if created else "<unknown>"


def _at(path: str, default: Any = _NONE) -> Callable[[Obj, float], Any]:
    steps = path.split(".")

    def value(obj: Obj, _now: float) -> Any:
        found: Any = obj
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return default if found is None or found == "" else found

    return value


def _column(name: str, path: str, default: Any = _NONE, *, wide: bool = False) -> Column:
    return Column(name=name, value=_at(path, default), wide=wide)


def _node_status(node: Obj, _now: float) -> str:
    condition = condition_of(node, "Ready")
    words = ["Unknown" if condition is None else "Ready" if condition["status"] == "True" else "NotReady"]
    if node.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(node: Obj, _now: float) -> str:
    prefix = "node-role.kubernetes.io/"
    return ",".join(sorted(key.removeprefix(prefix) for key in labels_of(node) if key.startswith(prefix))) or _NONE


def _address(kind: str) -> Callable[[Obj, float], str]:
    def value(node: Obj, _now: float) -> str:
        addresses = (node.get("status") or {}).get("addresses") or []
        return next((str(entry["address"]) for entry in addresses if entry["type"] == kind), _NONE)

    return value


def _pod_ready(pod: Obj, _now: float) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ready = sum(bool(entry.get("ready")) for entry in statuses)
    return f"{ready}/{len(pod['spec'].get('containers') or [])}"


def _pod_status(pod: Obj, _now: float) -> str:
    if is_deleting(pod):
        return "Terminating"
    if phase_of(pod) == "Pending" and node_of(pod):
        return "ContainerCreating"
    return {"Succeeded": "Completed", "Failed": "Error"}.get(phase_of(pod), phase_of(pod))


def _restarts(pod: Obj, _now: float) -> str:
    return str(sum(int(c.get("restartCount", 0)) for c in (pod.get("status") or {}).get("containerStatuses") or []))


def _gates(pod: Obj, _now: float) -> str:
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    good = sum((condition_of(pod, gate) or {}).get("status") == "True" for gate in gates)
    return f"{good}/{len(gates)}" if gates else _NONE


def _last_seen(event: Obj, now: float) -> str:
    moment = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return short_age(now - parsed(moment)) if moment else "<unknown>"


def _event_object(event: Obj, _now: float) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _ready_of(path: str) -> Callable[[Obj, float], str]:
    ready, wanted = _at("status.readyReplicas", 0), _at(path, 0)
    return lambda obj, now: f"{ready(obj, now)}/{wanted(obj, now)}"


def _pairs(path: str) -> Callable[[Obj, float], str]:
    found = _at(path, {})
    return lambda obj, now: ",".join(f"{key}={value}" for key, value in sorted(found(obj, now).items())) or _NONE


def _images(obj: Obj, _now: float) -> str:
    containers = obj["spec"].get("template", {}).get("spec", {}).get("containers") or []
    return ",".join(container.get("image", "") for container in containers)


def _containers(obj: Obj, _now: float) -> str:
    containers = obj["spec"].get("template", {}).get("spec", {}).get("containers") or []
    return ",".join(container["name"] for container in containers)


def _attached(obj: Obj, _now: float) -> str:
    return str(bool((obj.get("status") or {}).get("attached"))).lower()


def _role_ref(obj: Obj, _now: float) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


_NAME = Column(name="Name", value=lambda obj, _now: name_of(obj))
_AGE = Column(name="Age", value=_age)
_WORKLOAD_WIDE = (
    Column(name="Containers", value=_containers, wide=True),
    Column(name="Images", value=_images, wide=True),
    Column(name="Selector", value=_pairs("spec.selector.matchLabels"), wide=True),
)

_PRINTERS: dict[str, tuple[Column, ...]] = {
    "nodes": (
        _NAME,
        Column(name="Status", value=_node_status),
        Column(name="Roles", value=_roles),
        _AGE,
        _column("Version", "status.nodeInfo.kubeletVersion", ""),
        Column(name="Internal-IP", value=_address("InternalIP"), wide=True),
        Column(name="External-IP", value=_address("ExternalIP"), wide=True),
        _column("OS-Image", "status.nodeInfo.osImage", "<unknown>", wide=True),
        _column("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>", wide=True),
        _column("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>", wide=True),
    ),
    "pods": (
        _NAME,
        Column(name="Ready", value=_pod_ready),
        Column(name="Status", value=_pod_status),
        Column(name="Restarts", value=_restarts),
        _AGE,
        _column("IP", "status.podIP", wide=True),
        _column("Node", "spec.nodeName", wide=True),
        _column("Nominated Node", "status.nominatedNodeName", wide=True),
        Column(name="Readiness Gates", value=_gates, wide=True),
    ),
    "namespaces": (_NAME, _column("Status", "status.phase", ""), _AGE),
    "events": (
        Column(name="Last Seen", value=_last_seen),
        _column("Type", "type", ""),
        _column("Reason", "reason", ""),
        Column(name="Object", value=_event_object),
        _column("Subobject", "involvedObject.fieldPath", "", wide=True),
        _column("Source", "source.component", "", wide=True),
        _column("Message", "message", ""),
        _column("Count", "count", 1, wide=True),
        Column(name="Name", value=lambda obj, _now: name_of(obj), wide=True),
    ),
    "deployments": (
        _NAME,
        Column(name="Ready", value=_ready_of("spec.replicas")),
        _column("Up-to-date", "status.updatedReplicas", 0),
        _column("Available", "status.availableReplicas", 0),
        _AGE,
        *_WORKLOAD_WIDE,
    ),
    "replicasets": (
        _NAME,
        _column("Desired", "spec.replicas", 0),
        _column("Current", "status.replicas", 0),
        _column("Ready", "status.readyReplicas", 0),
        _AGE,
        *_WORKLOAD_WIDE,
    ),
    "statefulsets": (_NAME, Column(name="Ready", value=_ready_of("spec.replicas")), _AGE, *_WORKLOAD_WIDE[:2]),
    "daemonsets": (
        _NAME,
        _column("Desired", "status.desiredNumberScheduled", 0),
        _column("Current", "status.currentNumberScheduled", 0),
        _column("Ready", "status.numberReady", 0),
        _column("Up-to-date", "status.updatedNumberScheduled", 0),
        _column("Available", "status.numberAvailable", 0),
        Column(name="Node Selector", value=_pairs("spec.template.spec.nodeSelector")),
        _AGE,
        *_WORKLOAD_WIDE,
    ),
    "poddisruptionbudgets": (
        _NAME,
        _column("Min Available", "spec.minAvailable", "N/A"),
        _column("Max Unavailable", "spec.maxUnavailable", "N/A"),
        _column("Allowed Disruptions", "status.disruptionsAllowed", 0),
        _AGE,
    ),
    "configmaps": (_NAME, Column(name="Data", value=lambda obj, _now: len(obj.get("data") or {})), _AGE),
    "leases": (_NAME, _column("Holder", "spec.holderIdentity", ""), _AGE),
    "persistentvolumeclaims": (
        _NAME,
        _column("Status", "status.phase", ""),
        _column("Volume", "spec.volumeName", ""),
        _column("Capacity", "status.capacity.storage", ""),
        _column("StorageClass", "spec.storageClassName", ""),
        _AGE,
    ),
    "persistentvolumes": (
        _NAME,
        _column("Capacity", "spec.capacity.storage", ""),
        _column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", ""),
        _column("Status", "status.phase", ""),
        _column("Claim", "spec.claimRef.name", ""),
        _column("StorageClass", "spec.storageClassName", ""),
        _AGE,
    ),
    "volumeattachments": (
        _NAME,
        _column("Attacher", "spec.attacher", ""),
        _column("PV", "spec.source.persistentVolumeName", ""),
        _column("Node", "spec.nodeName", ""),
        Column(name="Attached", value=_attached),
        _AGE,
    ),
    "priorityclasses": (_NAME, _column("Value", "value", 0), _column("Global-Default", "globalDefault", "false"), _AGE),
    "clusterrolebindings": (_NAME, Column(name="Role", value=_role_ref), _AGE),
    "rolebindings": (_NAME, Column(name="Role", value=_role_ref), _AGE),
}
