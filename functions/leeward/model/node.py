"""Kubernetes Nodes cut down to what decisions need."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from leeward.model import keys
from leeward.model.instance import instance_id_of
from leeward.model.quantity import CPU, amount
from leeward.model.times import parse_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """One taint; two taints are the same mark when key and effect agree, as in Kubernetes."""

    key: str
    effect: str
    value: str = ""
    added: str = field(default="", compare=False)  # timeAdded as the API wrote it: a patch must give it back

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """From one element of `spec.taints`."""
        return cls(
            key=raw["key"], effect=raw.get("effect", ""), value=raw.get("value", ""), added=raw.get("timeAdded") or ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Node object. `taints` keeps the raw order, because a patch replaces the whole list.

    `cpu`: capacity in thousandths of a core (allocatable where only that is told), 0 when the status does not say.
    """

    name: str
    uid: str
    resource_version: str
    provider_id: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    deleting: bool
    created: datetime
    finalizers: tuple[str, ...] = ()
    cpu: int = 0
    kubelet: str = ""  # its version as it tells it: v1.31.4-eks-0a1b2c3

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """From a Node of the API or of `kubectl get -o json`."""
        meta, spec = raw["metadata"], raw.get("spec") or {}
        status = raw.get("status") or {}
        conditions = status.get("conditions") or ()
        cpu = (status.get("capacity") or {}).get(CPU) or (status.get("allocatable") or {}).get(CPU)
        created = meta.get("creationTimestamp")
        return cls(
            name=meta["name"],
            uid=meta.get("uid", ""),
            resource_version=meta.get("resourceVersion", ""),
            provider_id=spec.get("providerID", ""),
            labels=meta.get("labels") or {},
            annotations=meta.get("annotations") or {},
            taints=tuple(Taint.from_json(taint) for taint in spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            ready=any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions),
            deleting="deletionTimestamp" in meta,
            created=parse_instant(created) if created else datetime.min.replace(tzinfo=UTC),
            finalizers=tuple(meta.get("finalizers") or ()),
            cpu=amount(CPU, cpu, down=True) if cpu else 0,
            kubelet=(status.get("nodeInfo") or {}).get("kubeletVersion") or "",
        )

    @property
    def instance_id(self) -> str:
        """The EC2 instance behind the node, empty for a node without provider id."""
        return instance_id_of(self.provider_id)

    @property
    def marked(self) -> bool:
        """Leeward's own mark: the node is on its way out."""
        return any(taint.key == keys.DISRUPTED_TAINT for taint in self.taints)


def marked(node: Node, taint: Taint, *, cordon: bool) -> Node:
    """The node as it should be with the taint (told apart by key and effect), cordoned where that is asked.

    A cordon that was there before is remembered in an annotation: it is somebody else's.
    """
    if any((known.key, known.effect) == (taint.key, taint.effect) for known in node.taints):
        return replace(node, unschedulable=node.unschedulable or cordon)
    before = {keys.CORDONED_BEFORE: "true"} if cordon and node.unschedulable else {}
    return replace(
        node,
        taints=(*node.taints, taint),
        unschedulable=node.unschedulable or cordon,
        annotations={**node.annotations, **before},
    )


def cordoned(node: Node, by: str, *, exclude: bool = False) -> Node:
    """The node as it should be while it waits for its turn: cordoned, and no target of load balancers where `exclude`
    asks for it. What somebody else has done before is not ours: it is not noted, and so never undone.
    """
    notes, labels = dict(node.annotations), dict(node.labels)
    if not node.unschedulable:
        notes[keys.CORDONED_FOR] = by
    if exclude and keys.EXCLUDE_LABEL not in labels:
        labels[keys.EXCLUDE_LABEL], notes[keys.EXCLUDED_FOR] = "true", by
    return replace(node, unschedulable=True, annotations=notes, labels=labels)


def uncordoned(node: Node) -> Node:
    """The node without what `cordoned` did. On its way out it stays cordoned, and goes back into service with the end
    of that.
    """
    ours = {keys.CORDONED_FOR, keys.EXCLUDED_FOR} & node.annotations.keys()
    if not ours:
        return node
    gone = set(ours)
    labels = dict(node.labels)
    if keys.EXCLUDED_FOR in ours:
        labels.pop(keys.EXCLUDE_LABEL, None)
    if keys.CORDONED_FOR in ours and node.marked:
        gone.add(keys.CORDONED_BEFORE)
    return replace(
        node,
        unschedulable=node.unschedulable and (node.marked or keys.CORDONED_FOR not in ours),
        labels=labels,
        annotations={key: value for key, value in node.annotations.items() if key not in gone},
    )


def labelled(node: Node, labels: Mapping[str, str]) -> Node:
    """The node as it should be with the labels; one that it has already, with whatever value, is somebody's choice."""
    return replace(node, labels={**labels, **node.labels}) if labels.keys() - node.labels.keys() else node


def unmarked(node: Node, taint_key: str) -> Node:
    """The node as it should be without the taint: back in service, unless somebody else had cordoned it before.

    Without the taint there is nothing to undo: a cordon alone is not ours.
    """
    if not any(taint.key == taint_key for taint in node.taints):
        return node
    theirs = keys.CORDONED_BEFORE in node.annotations
    return replace(
        node,
        taints=tuple(taint for taint in node.taints if taint.key != taint_key),
        unschedulable=node.unschedulable and theirs,
        annotations={key: value for key, value in node.annotations.items() if key != keys.CORDONED_BEFORE},
    )
