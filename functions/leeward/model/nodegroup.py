"""Managed node groups of EKS, as DescribeNodegroup returns them, with EKS' node auto repair (`nodeRepairConfig`).

Source: EKS API reference, NodeRepairConfig and NodeRepairConfigOverrides. What Leeward does with it is decided in
`leeward.reconcile.unhealthy_nodes`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from leeward.errors import InvalidInputError
from leeward.model.node import Taint

EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NoSchedule": "NoSchedule",
    "NoExecute": "NoExecute",
    "PreferNoSchedule": "PreferNoSchedule",
}  # EKS' spelling and Kubernetes' -> Kubernetes'


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairOverride:
    """Override of one condition and reason. `after` in minutes; `action`: Replace, Reboot or NoAction."""

    condition: str
    reason: str
    after: int
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRepair:
    """`enabled`: EKS repairs the group's nodes. `most_unhealthy`: EKS' threshold, in nodes or (`percent`) in percent of
    them, None if it has none.
    """

    enabled: bool = False
    most_unhealthy: int | None = None
    percent: bool = False
    overrides: tuple[RepairOverride, ...] = ()

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a `nodeRepairConfig`; an absent one is empty. EKS' limits of parallel repairs are not kept."""
        count, share = raw.get("maxUnhealthyNodeThresholdCount"), raw.get("maxUnhealthyNodeThresholdPercentage")
        return cls(
            enabled=bool(raw.get("enabled")),
            most_unhealthy=count if count is not None else share,
            percent=count is None and share is not None,
            overrides=tuple(
                RepairOverride(
                    condition=one.get("nodeMonitoringCondition") or "",
                    reason=one.get("nodeUnhealthyReason") or "",
                    after=int(one.get("minRepairWaitTimeMins") or 0),
                    action=one.get("repairAction") or "",
                )
                for one in raw.get("nodeRepairConfigOverrides") or ()
            ),
        )


NOT_REPAIRED = NodeRepair()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodegroup:
    """Managed node group. `disk_gib` None if a custom launch template sets the volume; `template` (id, version) only
    for a custom one; `capacity_type` ON_DEMAND, SPOT or CAPACITY_BLOCK. `status` as EKS spells it, `issues` of its
    health as sentences, `release`: of EKS' image. `max_unavailable`, `max_unavailable_percentage` and `strategy` are
    EKS' updateConfig, by which it rolls the group; None or empty if it does not report them.
    """

    name: str
    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    ami_type: str = ""
    capacity_type: str = ""
    disk_gib: int | None = None
    version: str = ""
    instance_types: tuple[str, ...] = ()
    template: tuple[str, str] | None = None
    groups: tuple[str, ...] = ()
    status: str = ""
    issues: tuple[str, ...] = ()
    release: str = ""
    max_unavailable: int | None = None
    max_unavailable_percentage: int | None = None
    strategy: str = ""
    repair: NodeRepair = NOT_REPAIRED

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse the `nodegroup` of DescribeNodegroup's answer.

        Raises InvalidInputError for a taint effect that is neither EKS' nor Kubernetes' spelling: the whole answer is
        then unusable, as in Cluster Autoscaler (taintEksTranslator).
        """
        custom = raw.get("launchTemplate") or {}
        groups = (raw.get("resources") or {}).get("autoScalingGroups") or ()
        rolling = raw.get("updateConfig") or {}
        return cls(
            name=raw.get("nodegroupName") or "",
            cluster=raw.get("clusterName") or "",
            labels=dict(raw.get("labels") or {}),
            taints=tuple(_taint(one) for one in raw.get("taints") or () if one.get("key") and one.get("effect")),
            tags=dict(raw.get("tags") or {}),
            ami_type=raw.get("amiType") or "",
            capacity_type=raw.get("capacityType") or "",
            disk_gib=int(raw["diskSize"]) if raw.get("diskSize") else None,
            version=raw.get("version") or "",
            instance_types=tuple(raw.get("instanceTypes") or ()),
            template=(custom["id"], str(custom.get("version") or "")) if custom.get("id") else None,
            groups=tuple(one["name"] for one in groups if one.get("name")),
            status=raw.get("status") or "",
            issues=tuple(_issue(one) for one in (raw.get("health") or {}).get("issues") or ()),
            release=raw.get("releaseVersion") or "",
            max_unavailable=rolling.get("maxUnavailable"),
            max_unavailable_percentage=rolling.get("maxUnavailablePercentage"),
            strategy=rolling.get("updateStrategy") or "",
            repair=NodeRepair.from_json(raw.get("nodeRepairConfig") or {}),
        )


def _issue(raw: Mapping[str, Any]) -> str:
    about = ", ".join(raw.get("resourceIds") or ())
    return f"{raw.get('code', 'Unknown')}: {raw.get('message', '')}{f' ({about})' if about else ''}"


def _taint(raw: Mapping[str, Any]) -> Taint:
    effect = EFFECTS.get(raw["effect"])
    if effect is None:
        raise InvalidInputError(
            f"taint {raw['key']}: found effect {raw['effect']!r}, expected one of {', '.join(EFFECTS)}"
        )
    return Taint(key=raw["key"], value=raw.get("value") or "", effect=effect)
