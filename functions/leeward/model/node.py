"""Nodes of Kubernetes, cut down to what decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from leeward.errors import InvalidInputError
from leeward.model import well_known
from leeward.model.instance import instance_id_of
from leeward.model.quantity import CPU, amount
from leeward.model.raw_fields import instant, listed, mapping, mappings, metadata_of, text, texts

if TYPE_CHECKING:
    from leeward.model.node_condition import NodeCondition

LONG_AGO = datetime.min.replace(tzinfo=UTC)  # for objects without a date


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """Taint of a node; two taints are the same if key and effect agree, as in Kubernetes."""

    key: str
    effect: str
    value: str = ""
    added: str = field(default="", compare=False)  # timeAdded as the API wrote it: a patch must return it

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `spec.taints`."""
        effect, value, added = (text(raw.get(name)) for name in ("effect", "value", "timeAdded"))
        return cls(key=raw["key"], effect=effect, value=value, added=added)


def disruption_taint(deployment: str) -> Taint:
    """Return the taint of a node that this deployment is terminating: its value names the owner, so that two
    deployments on one cluster leave each other's nodes alone.
    """
    return Taint(key=well_known.DISRUPTED_TAINT, effect="NoSchedule", value=deployment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Node object. `taints` keeps the raw order, because a patch replaces the whole list.

    `cpu`: capacity in thousandths of a core (allocatable if only that is reported), 0 if the status has none.
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
    kubelet: str = ""  # its version as it reports it: v1.31.4-eks-0a1b2c3
    not_ready_since: datetime | None = None  # None while it is Ready; its creation if no condition was ever written
    not_ready_why: str = ""  # the Ready condition's reason: NodeStatusUnknown, KubeletNotReady ...
    conditions: tuple[Mapping[str, Any], ...] = ()  # as the API wrote them, kept while it is not Ready
    monitored: tuple[NodeCondition, ...] = ()  # its other conditions
    boot: str = ""  # boot id: another one after every boot

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a Node of the API or of `kubectl get -o json`. Raises InvalidInputError for one without a name."""
        from leeward.model.node_condition import monitored  # late: a cold start for a spot warning parses no Node

        meta, spec, status = metadata_of(raw, "node"), mapping(raw.get("spec")), mapping(raw.get("status"))
        conditions, machine = mappings(status.get("conditions")), mapping(status.get("nodeInfo"))
        created = instant(meta.get("creationTimestamp")) or LONG_AGO
        condition: Mapping[str, Any] = next((one for one in conditions if one.get("type") == "Ready"), {})
        ready = condition.get("status") == "True"
        return cls(
            name=meta["name"],
            uid=text(meta.get("uid")),
            resource_version=text(meta.get("resourceVersion")),
            provider_id=text(spec.get("providerID")),
            labels=texts(meta.get("labels")),
            annotations=texts(meta.get("annotations")),
            taints=tuple(Taint.from_json(taint) for taint in mappings(spec.get("taints")) if text(taint.get("key"))),
            unschedulable=spec.get("unschedulable") is True,
            ready=ready,
            deleting=bool(meta.get("deletionTimestamp")),
            created=created,
            finalizers=listed(meta.get("finalizers")),
            cpu=_cpu(status),
            kubelet=text(machine.get("kubeletVersion")),
            not_ready_since=None if ready else instant(condition.get("lastTransitionTime")) or created,
            not_ready_why="" if ready else text(condition.get("reason")),
            conditions=() if ready else tuple(conditions),
            monitored=monitored(conditions, created),
            boot=text(machine.get("bootID")),
        )

    @property
    def instance_id(self) -> str:
        """EC2 instance behind the node, empty for a node without provider id."""
        return instance_id_of(self.provider_id)

    @property
    def uninitialized(self) -> bool:
        """True if the cloud controller does not know the instance behind the node yet; it takes no pods until then."""
        return not self.provider_id and any(one.key == well_known.UNINITIALIZED_TAINT for one in self.taints)

    @property
    def tainted(self) -> bool:
        """True if the node carries the taint of any deployment of Leeward: it is being terminated."""
        return self.disrupted_by is not None

    @property
    def disrupted_by(self) -> str | None:
        """Deployment whose taint the node carries, None without a taint."""
        return next((taint.value for taint in self.taints if taint.key == well_known.DISRUPTED_TAINT), None)

    def is_foreign(self, deployment: str) -> bool:
        """Return whether another deployment than this one is terminating the node: its taint is not ours to remove."""
        return self.disrupted_by not in {None, deployment}

    @property
    def taken_out(self) -> bool:
        """True if a termination has left a trace on it: the taint, or the note of its cordon or of the label that keeps
        it out of load balancers.
        """
        return self.tainted or bool(
            {well_known.CORDONED_BY_DRAIN, well_known.EXCLUDED_BY_DRAIN} & self.annotations.keys()
        )


def tainted(node: Node, taint: Taint, *, cordon: bool, exclude: bool = False) -> Node:
    """Return the node as it should be with the taint (identified by key and effect), cordoned if requested, and with
    `exclude` no target of load balancers.

    An earlier cordon and an earlier label belong to another owner: only those noted as ours are removed again. The
    notes outlive the taint, which a person may remove during the drain.
    """
    if cordon and not node.unschedulable and taint.key == well_known.DISRUPTED_TAINT:
        node = replace(node, annotations={**node.annotations, well_known.CORDONED_BY_DRAIN: "true"})
    node = replace(node, unschedulable=node.unschedulable or cordon)
    if exclude and well_known.EXCLUDE_LABEL not in node.labels:
        labels, notes = (
            {**node.labels, well_known.EXCLUDE_LABEL: "true"},
            {**node.annotations, well_known.EXCLUDED_BY_DRAIN: "true"},
        )
        node = replace(node, labels=labels, annotations=notes)
    there = any((known.key, known.effect) == (taint.key, taint.effect) for known in node.taints)
    return node if there else replace(node, taints=(*node.taints, taint))


def cordoned(node: Node, by: str, *, exclude: bool = False) -> Node:
    """Return the node as it should be while it waits for its turn: cordoned, and no target of load balancers if
    `exclude` is set. An earlier change by another owner is not ours: it is not noted, and so never undone.
    """
    notes, labels = dict(node.annotations), dict(node.labels)
    if not node.unschedulable:
        notes[well_known.CORDONED_FOR] = by
    if exclude and well_known.EXCLUDE_LABEL not in labels:
        labels[well_known.EXCLUDE_LABEL], notes[well_known.EXCLUDED_FOR] = "true", by
    return replace(node, unschedulable=True, annotations=notes, labels=labels)


def uncordoned(node: Node) -> Node:
    """Return the node without the changes of `cordoned`. A node under termination stays cordoned and no target of load
    balancers, and returns to service with the end of that.
    """
    ours = {well_known.CORDONED_FOR, well_known.EXCLUDED_FOR} & node.annotations.keys()
    if not ours:
        return node
    notes, labels = dict(node.annotations), dict(node.labels)
    if well_known.EXCLUDED_FOR in ours and node.tainted:
        notes[well_known.EXCLUDED_BY_DRAIN] = "true"
    elif well_known.EXCLUDED_FOR in ours:
        labels.pop(well_known.EXCLUDE_LABEL, None)
    if well_known.CORDONED_FOR in ours and node.tainted:
        notes[well_known.CORDONED_BY_DRAIN] = "true"
    return replace(
        node,
        unschedulable=node.unschedulable and (node.tainted or well_known.CORDONED_FOR not in ours),
        labels=labels,
        annotations={key: value for key, value in notes.items() if key not in ours},
    )


def labelled(node: Node, labels: Mapping[str, str]) -> Node:
    """Return the node as it should be with the labels; an existing one, whatever its value, is another's choice."""
    return replace(node, labels={**labels, **node.labels}) if labels.keys() - node.labels.keys() else node


def annotated(node: Node, annotations: Mapping[str, str | None]) -> Node:
    """Return the node as it should be with the annotations; None: without that one."""
    kept = {key: value for key, value in node.annotations.items() if key not in annotations}
    return replace(
        node, annotations={**kept, **{key: value for key, value in annotations.items() if value is not None}}
    )


def held(node: Node, finalizer: str) -> Node:
    """Return the node as it should be with the finalizer; the API takes none for an object that is being deleted."""
    if node.deleting or finalizer in node.finalizers:
        return node
    return replace(node, finalizers=(*node.finalizers, finalizer))


def released(node: Node, finalizer: str) -> Node:
    """Return the node as it should be without the finalizer; others' stay, in their order."""
    return replace(node, finalizers=tuple(one for one in node.finalizers if one != finalizer))


def stripped(node: Node, deployment: str) -> Node:
    """Return the node without anything that Leeward has ever put on it: taint, cordons, labels, annotations, finalizer.
    Instructions that people put on it for Leeward stay, and so do values that another autoscaler may have written as
    well. A node that another deployment is terminating stays as it is.
    """
    if node.is_foreign(deployment):
        return node
    bare = uncordoned(untainted(node, disruption_taint(deployment)))
    kept = {well_known.SCALE_DOWN_DISABLED} if well_known.KEPT_FOR in node.annotations else set()
    return replace(
        bare,
        taints=tuple(taint for taint in bare.taints if not taint.key.startswith(well_known.PREFIX)),
        labels={key: value for key, value in bare.labels.items() if not key.startswith(well_known.PREFIX)},
        annotations={
            key: value
            for key, value in bare.annotations.items()
            if key not in kept and (not key.startswith(well_known.PREFIX) or key == well_known.DO_NOT_DISRUPT)
        },
        finalizers=tuple(one for one in bare.finalizers if not one.startswith(well_known.PREFIX)),
    )


def untainted(node: Node, taint: Taint) -> Node:
    """Return the node as it should be without the taint: back in service and in load balancers, unless another owner
    had cordoned or excluded it before. A taint of the same key with another value has another owner: nothing is
    changed.

    What is noted is ours without the taint as well, which a person may have removed.
    """
    if any(known.key == taint.key and known.value != taint.value for known in node.taints):
        return node
    node = _included(node)
    ours = well_known.CORDONED_BY_DRAIN in node.annotations
    return replace(
        node,
        taints=tuple(known for known in node.taints if known.key != taint.key),
        unschedulable=node.unschedulable and not ours,
        annotations={key: value for key, value in node.annotations.items() if key != well_known.CORDONED_BY_DRAIN},
    )


def returned_to_service(read: Node, current: Node, taint: Taint) -> Node:
    """Return `current` without the taint. The decision was made on `read`: if a drain has taken the node out of load
    balancers since, a termination has begun, and the node stays as it is.
    """
    began_since = (
        well_known.EXCLUDED_BY_DRAIN in current.annotations and well_known.EXCLUDED_BY_DRAIN not in read.annotations
    )
    return current if began_since else untainted(current, taint)


def _cpu(status: Mapping[str, Any]) -> int:
    """Return the capacity in thousandths of a core; 0 where neither it nor the allocatable amount can be read."""
    for part in ("capacity", "allocatable"):
        with suppress(InvalidInputError):
            if cpu := mapping(status.get(part)).get(CPU):
                return amount(CPU, cpu, down=True)
    return 0


def _included(node: Node) -> Node:
    """Remove the label that a termination has put there."""
    if well_known.EXCLUDED_BY_DRAIN not in node.annotations:
        return node
    labels = {key: value for key, value in node.labels.items() if key != well_known.EXCLUDE_LABEL}
    notes = {key: value for key, value in node.annotations.items() if key != well_known.EXCLUDED_BY_DRAIN}
    return replace(node, labels=labels, annotations=notes)
