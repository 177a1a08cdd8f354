"""Nodes as a scheduler sees them, and templates of nodes that do not exist yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from leeward.model.node import Taint
from leeward.model.quantity import Amounts, amounts
from leeward.model.well_known import ZONE_LABEL
from leeward.scheduling.malformed import UNREADABLE, malformed

HOSTNAME_LABEL = "kubernetes.io/hostname"
EBS_ZONE_LABEL = "topology.ebs.csi.aws.com/zone"  # the EBS driver labels every node so; its volumes ask for it


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One node. `attach_limits`: volumes that each CSI driver can attach; a driver that is not named has no limit.

    `closed`: why it takes no pods whatever they tolerate, in kube-scheduler's style; empty: it takes pods.
    """

    name: str
    labels: Mapping[str, str]
    allocatable: Amounts
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    attach_limits: Mapping[str, int] = field(default_factory=dict)
    closed: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], csi_node: Mapping[str, Any] | None = None) -> Self:
        """Parse a Node and, where there is one, its CSINode. Raises InvalidInputError, which names the node, for input
        that the schema does not allow.
        """
        try:
            return cls._read(raw, csi_node or {})
        except UNREADABLE as error:
            raise malformed("node", raw, error) from error

    @classmethod
    def _read(cls, raw: Mapping[str, Any], csi_node: Mapping[str, Any]) -> Self:
        meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
        return cls(
            name=meta["name"],
            labels=meta.get("labels") or {},
            allocatable=amounts(status.get("allocatable") or status.get("capacity"), down=True),
            taints=tuple(Taint.from_json(taint) for taint in spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            attach_limits=_limits(csi_node),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """Place where a node of a template can come up. `price` in dollars an hour, where it is known.

    `labels` are those that only this place gives, such as the subnet's.
    """

    zone: str
    price: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """Template of a group's new nodes. `most`: new nodes that the group can still get, None without a limit."""

    name: str
    node: NodeSpec
    offerings: tuple[Offering, ...]
    most: int | None = None

    def made(self, at: int, number: int) -> NodeSpec:
        """Return the `number`th node of its offering `at`, with the labels of that place and a name of its own."""
        offering, name = self.offerings[at], f"new-{self.name}-{at}-{number}"
        place = {ZONE_LABEL: offering.zone, EBS_ZONE_LABEL: offering.zone} if offering.zone else {}
        return replace(
            self.node,
            name=name,
            labels={**self.node.labels, **place, **offering.labels, HOSTNAME_LABEL: name},
            unschedulable=False,
        )


def _limits(csi_node: Mapping[str, Any]) -> dict[str, int]:
    """Return the limits in `spec.drivers[].allocatable.count` of a CSINode."""
    drivers = (csi_node.get("spec") or {}).get("drivers") or ()
    counts = {driver["name"]: (driver.get("allocatable") or {}).get("count") for driver in drivers}
    return {name: int(count) for name, count in counts.items() if count is not None}
