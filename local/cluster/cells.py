"""Cells of `kubectl get` tables: each takes an object and the present (seconds since 1970).

They match the real printers: `pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local.cluster.objects import Obj, annotations_of, condition_of, is_deleting, labels_of, name_of, node_of, phase_of
from local.cluster.settings import DEFAULT_CLASS
from local.cluster.timestamps import parsed, short_age

NONE = "<none>"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    value: Callable[[Obj, float], Any]  # (object, now in seconds since 1970)
    wide: bool = False


def age(obj: Obj, now: float) -> str:
    created = obj["metadata"].get("creationTimestamp")
    return short_age(now - parsed(created)) if created else "<unknown>"


def at(path: str, default: Any = NONE) -> Callable[[Obj, float], Any]:
    steps = path.split(".")

    def value(obj: Obj, _now: float) -> Any:
        found: Any = obj
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return default if found is None or found == "" else found

    return value


def column(name: str, path: str, default: Any = NONE, *, wide: bool = False) -> Column:
    return Column(name=name, value=at(path, default), wide=wide)


def node_status(node: Obj, _now: float) -> str:
    condition = condition_of(node, "Ready")
    words = ["Unknown" if condition is None else "Ready" if condition["status"] == "True" else "NotReady"]
    if node.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def roles(node: Obj, _now: float) -> str:
    prefix = "node-role.kubernetes.io/"
    return ",".join(sorted(key.removeprefix(prefix) for key in labels_of(node) if key.startswith(prefix))) or NONE


def address(kind: str) -> Callable[[Obj, float], str]:
    def value(node: Obj, _now: float) -> str:
        addresses = (node.get("status") or {}).get("addresses") or []
        return next((str(entry["address"]) for entry in addresses if entry["type"] == kind), NONE)

    return value


def pod_ready(pod: Obj, _now: float) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    ready = sum(bool(entry.get("ready")) for entry in statuses)
    return f"{ready}/{len(pod['spec'].get('containers') or [])}"


def pod_status(pod: Obj, _now: float) -> str:
    if is_deleting(pod):
        return "Terminating"
    if phase_of(pod) == "Pending" and node_of(pod):
        return "ContainerCreating"
    return {"Succeeded": "Completed", "Failed": "Error"}.get(phase_of(pod), phase_of(pod))


def restarts(pod: Obj, _now: float) -> str:
    return str(sum(int(c.get("restartCount", 0)) for c in (pod.get("status") or {}).get("containerStatuses") or []))


def gates(pod: Obj, _now: float) -> str:
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]
    good = sum((condition_of(pod, gate) or {}).get("status") == "True" for gate in gates)
    return f"{good}/{len(gates)}" if gates else NONE


def last_seen(event: Obj, now: float) -> str:
    moment = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    return short_age(now - parsed(moment)) if moment else "<unknown>"


def event_object(event: Obj, _now: float) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def ready_of(path: str) -> Callable[[Obj, float], str]:
    ready, wanted = at("status.readyReplicas", 0), at(path, 0)
    return lambda obj, now: f"{ready(obj, now)}/{wanted(obj, now)}"


def pairs(path: str) -> Callable[[Obj, float], str]:
    found = at(path, {})
    return lambda obj, now: ",".join(f"{key}={value}" for key, value in sorted(found(obj, now).items())) or NONE


def images(obj: Obj, _now: float) -> str:
    containers = obj["spec"].get("template", {}).get("spec", {}).get("containers") or []
    return ",".join(container.get("image", "") for container in containers)


def containers(obj: Obj, _now: float) -> str:
    containers = obj["spec"].get("template", {}).get("spec", {}).get("containers") or []
    return ",".join(container["name"] for container in containers)


def attached(obj: Obj, _now: float) -> str:
    return str(bool((obj.get("status") or {}).get("attached"))).lower()


def role_ref(obj: Obj, _now: float) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def access_modes(obj: Obj, _now: float) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in obj["spec"].get("accessModes") or [])


def claim_ref(volume: Obj, _now: float) -> str:
    reference = volume["spec"].get("claimRef")
    return f"{reference['namespace']}/{reference['name']}" if reference else ""


def class_name(storage_class: Obj, _now: float) -> str:
    marked = annotations_of(storage_class).get(DEFAULT_CLASS) == "true"
    return f"{name_of(storage_class)} (default)" if marked else name_of(storage_class)


def job_status(job: Obj, _now: float) -> str:
    if is_deleting(job):
        return "Terminating"
    for kind in ("Complete", "Failed"):
        if (condition_of(job, kind) or {}).get("status") == "True":
            return kind
    return "Suspended" if job["spec"].get("suspend") else "Running"


def job_completions(job: Obj, _now: float) -> str:
    succeeded, wanted = (job.get("status") or {}).get("succeeded", 0), job["spec"].get("completions")
    parallelism = job["spec"].get("parallelism", 1)
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def job_duration(job: Obj, now: float) -> str:
    status = job.get("status") or {}
    if "startTime" not in status:
        return ""
    end = parsed(status["completionTime"]) if "completionTime" in status else now
    return short_age(end - parsed(status["startTime"]))
