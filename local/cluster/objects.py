"""Readers of Kubernetes objects that are plain JSON dictionaries.

Stored objects are never changed in place: a writer takes `copied()`, changes that, and puts it back.
"""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


def copied(value: Any) -> Any:
    """Return a deep copy of JSON data (several times faster than `copy.deepcopy`, which handles cycles and classes)."""
    if isinstance(value, dict):
        # most values are text and numbers, and a call for each would take most of the time
        return {key: copied(item) if isinstance(item, (dict, list)) else item for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def name_of(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def namespace_of(obj: Obj) -> str | None:
    namespace = obj["metadata"].get("namespace")
    return None if namespace is None else str(namespace)


def uid_of(obj: Obj) -> str:
    return str(obj["metadata"]["uid"])


def labels_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def is_deleting(obj: Obj) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def phase_of(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Obj) -> bool:
    return phase_of(pod) in FINISHED_PHASES


def node_of(pod: Obj) -> str | None:
    """Return the node that the pod is bound to, or None."""
    return pod.get("spec", {}).get("nodeName") or None


def condition_of(obj: Obj, kind: str) -> Obj | None:
    """Return the status condition of that type (`Ready`, `PodScheduled` …), or None."""
    for condition in (obj.get("status") or {}).get("conditions") or []:
        if condition.get("type") == kind:
            found: Obj = condition
            return found
    return None


def is_ready(obj: Obj) -> bool:
    """Return whether the condition Ready is True, of a pod as the disruption controller reads it, or of a node."""
    condition = condition_of(obj, "Ready")
    return condition is not None and condition.get("status") == "True"


def controller_of(obj: Obj) -> Obj | None:
    """Return the owner reference with `controller: true`; a pod has at most one."""
    for reference in obj["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            found: Obj = reference
            return found
    return None


def owner_name(obj: Obj) -> str | None:
    """Return `Kind/name` of the controller, for records."""
    owner = controller_of(obj)
    return f"{owner['kind']}/{owner['name']}" if owner else None


def path_name(obj: Obj) -> str:
    """Return `namespace/name`, or only the name of a cluster-scoped object."""
    namespace = namespace_of(obj)
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def set_condition(status: Obj, condition: Obj) -> None:
    """Replace or add one condition of a status that the caller owns; the transition time stays when the status did not
    change.
    """
    conditions = status.setdefault("conditions", [])
    for index, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            if present.get("status") == condition["status"] and "lastTransitionTime" in present:
                condition = {**condition, "lastTransitionTime": present["lastTransitionTime"]}
            conditions[index] = {**present, **condition}
            return
    conditions.append(condition)
