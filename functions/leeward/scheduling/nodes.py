"""Nodes as the scheduler sees them, and templates of nodes that do not exist yet.

Parses only what scheduling reads; `model.node` has the rest of a Node."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from leeward.model.node import Taint
from leeward.model.quantity import Amounts, amounts
from leeward.model.raw_fields import metadata_of, texts
from leeward.model.well_known import ZONE_LABEL
from leeward.scheduling.malformed import UNREADABLE, malformed

HOSTNAME_LABEL = "kubernetes.io/hostname"
EBS_ZONE_LABEL = "topology.ebs.csi.aws.com/zone"  # set on every node by the EBS CSI driver, whose volumes require it


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node. `attach_limits`: number of volumes by CSI driver; a driver that is not listed has no limit.

    `variants`: of a node that stands for several instance types, the labels in which these differ, once for each: a
    requirement has to hold for all of them. `open_labels`: a node to come, of which not all labels are known.

    `closed`: why the node accepts no pod, whatever the pod tolerates, in kube-scheduler's style; empty: it accepts
    pods.
    """

    name: str
    labels: Mapping[str, str]
    allocatable: Amounts
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    attach_limits: Mapping[str, int] = field(default_factory=dict)
    variants: tuple[tuple[tuple[str, str], ...], ...] = ()
    open_labels: bool = False
    closed: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], csi_node: Mapping[str, Any] | None = None) -> Self:
        """Parse a Node and its CSINode, if it has one. Raises InvalidInputError, which names the node, for input that
        the schema does not allow.
        """
        try:
            return cls._parse(raw, csi_node or {})
        except UNREADABLE as error:
            raise malformed("node", raw, error) from error

    @classmethod
    def unread(cls, raw: Mapping[str, Any]) -> Self:
        """Return a node that `from_json` refuses: it takes no pods, and the others can be planned for."""
        meta = metadata_of(raw, "node")
        closed = "node(s) had a field that planning cannot read"
        return cls(name=meta["name"], labels=texts(meta.get("labels")), allocatable={}, closed=closed)

    @classmethod
    def _parse(cls, raw: Mapping[str, Any], csi_node: Mapping[str, Any]) -> Self:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        return cls(
            name=meta["name"],
            labels=texts(meta.get("labels")),
            allocatable=amounts(status.get("allocatable") or status.get("capacity"), down=True),
            taints=tuple(Taint.from_json(taint) for taint in spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            attach_limits=_limits(csi_node),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateOffering:
    """Zone in which a template's node can be launched.

    `price`: dollars an hour, 0 where unknown. `labels`: labels that only nodes of this zone have, such as the subnet's.
    """

    zone: str
    price: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """Template of a group's new nodes. `max_nodes`: how many more nodes the group can launch; None: no limit."""

    name: str
    node: NodeSpec
    offerings: tuple[TemplateOffering, ...]
    max_nodes: int | None = None

    def new_node(self, at: int, number: int) -> NodeSpec:
        """Return new node `number` of offering `at` (an index of `offerings`), with that zone's labels and a unique
        name.
        """
        offering, name = self.offerings[at], f"new-{self.name}-{at}-{number}"
        zone_labels = {ZONE_LABEL: offering.zone, EBS_ZONE_LABEL: offering.zone} if offering.zone else {}
        return replace(
            self.node,
            name=name,
            labels={**self.node.labels, **zone_labels, **offering.labels, HOSTNAME_LABEL: name},
            unschedulable=False,
        )


def _limits(csi_node: Mapping[str, Any]) -> dict[str, int]:
    """Return `spec.drivers[].allocatable.count` of a CSINode by driver, without drivers that set none."""
    drivers = (csi_node.get("spec") or {}).get("drivers") or ()
    counts = {driver["name"]: (driver.get("allocatable") or {}).get("count") for driver in drivers}
    return {name: int(count) for name, count in counts.items() if count is not None}
