"""Objects that Leeward writes (patches, evictions, deletions and Events) and their paths. Calls nothing."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from leeward.model.node import Node, Taint
from leeward.model.pod import Pod
from leeward.model.raw_fields import mapping, metadata_of, text, texts
from leeward.model.times import format_instant
from leeward.model.visible import visible

EVENT_EVERY_SECONDS = 600
EVENT_MESSAGE_CHARACTERS = 1024  # what the API server takes
EVENT_NAME_CHARACTERS = 200
NODE_EVENTS_NAMESPACE = "default"  # namespace of Events about objects without a namespace


def node_patch(current: Node, wanted: Node) -> dict[str, Any]:
    """Build a merge patch, which replaces whole lists (taints, finalizers): the version ensures they are those read."""
    metadata: dict[str, Any] = {"resourceVersion": current.resource_version}
    for name, old, new in (
        ("annotations", current.annotations, wanted.annotations),
        ("labels", current.labels, wanted.labels),
    ):
        changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
        if changed:
            metadata[name] = {key: new.get(key) for key in sorted(changed)}
    if current.finalizers != wanted.finalizers:
        metadata["finalizers"] = list(wanted.finalizers)
    taints = [_taint(taint) for taint in wanted.taints]
    return {"metadata": metadata, "spec": {"taints": taints or None, "unschedulable": wanted.unschedulable or None}}


def volume(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a PersistentVolume to the fields that Leeward reads."""
    meta, spec = metadata_of(raw, "persistentvolume"), mapping(raw.get("spec"))
    phase = text(mapping(raw.get("status")).get("phase"))
    return {
        "metadata": {"name": meta["name"], "labels": texts(meta.get("labels"))},
        "spec": {name: part for name in ("claimRef", "nodeAffinity") if (part := mapping(spec.get(name)))},
        "status": {"phase": phase} if phase else {},
    }


def eviction(pod: Pod, grace_seconds: int | None = None) -> dict[str, Any]:
    """Build a policy/v1 Eviction of exactly this pod, not of one that has taken its name since; without grace seconds
    the pod's own apply.
    """
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }


def pod_annotations(pod: Pod, annotations: Mapping[str, str | None]) -> dict[str, Any]:
    """Build a merge patch for the annotations of exactly this pod, None: that one is removed. Of an object with another
    uid the API server refuses the patch.
    """
    return {"metadata": {"uid": pod.uid, "annotations": dict(annotations)}}


def deletion(uid: str, grace_seconds: int | None = None) -> dict[str, Any]:
    """Build DeleteOptions; without grace seconds the object's own apply."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    return options


def event(about: Node | Pod, *, reason: str, message: str, warning: bool, now: datetime) -> dict[str, Any]:
    """Build a core/v1 Event, named after its object, its reason and the ten minutes in which it falls."""
    namespace = about.namespace if isinstance(about, Pod) else NODE_EVENTS_NAMESPACE
    when = format_instant(now.replace(microsecond=0))
    involved = {"apiVersion": "v1", "kind": type(about).__name__, "name": about.name, "uid": about.uid}
    if isinstance(about, Pod):
        involved["namespace"] = about.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event_name(about, reason, now), "namespace": namespace},
        "involvedObject": involved,
        "reason": reason,
        "message": visible(message)[:EVENT_MESSAGE_CHARACTERS],
        "type": "Warning" if warning else "Normal",
        "source": {"component": "leeward"},
        "firstTimestamp": when,
        "lastTimestamp": when,
        "count": 1,
    }


def event_name(about: Node | Pod, reason: str, now: datetime) -> str:
    """Return the same name for a repeat within ten minutes of the clock, so that the API answers AlreadyExists."""
    bucket = int(now.timestamp()) // EVENT_EVERY_SECONDS
    mark = hashlib.sha256(f"{about.uid}/{reason}/{bucket}".encode()).hexdigest()[:16]
    return f"{about.name[:EVENT_NAME_CHARACTERS].rstrip('.-')}.{mark}"


def _taint(taint: Taint) -> dict[str, str]:
    raw = {"key": taint.key, "value": taint.value, "effect": taint.effect, "timeAdded": taint.added}
    return {name: value for name, value in raw.items() if value}


def node_path(name: str) -> str:
    """Return the path of a Node."""
    return f"/api/v1/nodes/{quote(name, safe='')}"


def pod_path(pod: Pod) -> str:
    """Return the path of a pod."""
    return f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}"
