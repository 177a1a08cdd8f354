"""The scale subresource of workloads: a workload's Scale, and the workload that a written Scale results in."""

from __future__ import annotations

from .errors import bad_request, method_not_allowed, negative_scale
from .objects import Obj, copied, name_of
from .resources import resource_named


def scale_of(obj: Obj) -> Obj:
    """Return the autoscaling/v1 Scale of a workload."""
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    labels = (obj["spec"].get("selector") or {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": obj["spec"].get("replicas", 0)},
        "status": {
            "replicas": (obj.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }


def scaled(resource: str, old: Obj, scale: Obj) -> Obj:
    """Return the workload with the Scale's replicas and version. Raises ApiError 400 for replicas that are no integer,
    405 for a resource without Scale, 422 for a negative number.
    """
    if not resource_named(resource).scalable:
        raise method_not_allowed()
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int):
        raise bad_request("spec.replicas: must be an integer")
    if replicas < 0:
        raise negative_scale(name_of(old), replicas)
    new: Obj = copied(old)
    new["spec"]["replicas"] = replicas
    new["metadata"].update(resourceVersion=(scale.get("metadata") or {}).get("resourceVersion"))
    return new
