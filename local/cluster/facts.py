"""Conversion of writes to nodes and pods into facts of the history."""

from __future__ import annotations

from .history import FactKind, History
from .objects import Obj, is_deleting, is_ready, name_of, node_of, owner_name, path_name, phase_of
from .store import Change, ChangeType


class FactRecorder:
    """Observer of the store that records facts."""

    def __init__(self, history: History) -> None:
        self._history = history

    def observe(self, change: Change) -> None:
        if change.resource == "pods":
            self._pod(change)
        elif change.resource == "nodes":
            self._node(change)

    def _pod(self, change: Change) -> None:
        old, pod = change.old, change.obj
        if change.type is ChangeType.DELETED:
            self._about_pod(FactKind.POD_DELETED, pod)
            return
        if phase_of(pod) == "Running" and (old is None or phase_of(old) != "Running"):
            self._about_pod(FactKind.POD_STARTED, pod)
        before, after = old is not None and is_ready(old), is_ready(pod)
        if before != after:
            self._about_pod(FactKind.POD_READY if after else FactKind.POD_NOT_READY, pod)
        if is_deleting(pod) and (old is None or not is_deleting(old)):
            grace = pod["metadata"].get("deletionGracePeriodSeconds")
            self._about_pod(FactKind.POD_DELETION_STARTED, pod, graceSeconds=grace)

    def _about_pod(self, kind: FactKind, pod: Obj, **detail: object) -> None:
        uid = pod["metadata"]["uid"]
        self._history.add(kind, path_name(pod), node=node_of(pod), owner=owner_name(pod), uid=uid, **detail)

    def _node(self, change: Change) -> None:
        name, old, node = name_of(change.obj), change.old, change.obj
        provider = node.get("spec", {}).get("providerID")
        if change.type is ChangeType.DELETED:
            self._history.add(FactKind.NODE_DELETED, name, providerID=provider)
            return
        if old is None:
            self._history.add(FactKind.NODE_CREATED, name, providerID=provider)
        before, after = old is not None and is_ready(old), is_ready(node)
        if before != after:
            self._history.add(FactKind.NODE_READY if after else FactKind.NODE_NOT_READY, name)
        was_cordoned = bool((old or {}).get("spec", {}).get("unschedulable"))
        cordoned = bool(node["spec"].get("unschedulable"))
        if was_cordoned != cordoned:
            self._history.add(FactKind.NODE_CORDONED if cordoned else FactKind.NODE_UNCORDONED, name)
        self._taints(name, _taints(old), _taints(node))
        if is_deleting(node) and (old is None or not is_deleting(old)):
            self._history.add(FactKind.NODE_DELETION_STARTED, name, finalizers=node["metadata"].get("finalizers"))

    def _taints(self, name: str, before: list[str], after: list[str]) -> None:
        for taint in after:
            if taint not in before:
                self._history.add(FactKind.NODE_TAINTED, name, taint=taint)
        for taint in before:
            if taint not in after:
                self._history.add(FactKind.NODE_UNTAINTED, name, taint=taint)


def _taints(node: Obj | None) -> list[str]:
    taints = (node or {}).get("spec", {}).get("taints") or []
    return [f"{taint.get('key')}={taint.get('value') or ''}:{taint.get('effect')}" for taint in taints]
