"""Managed node groups of EKS, as DescribeNodegroup returns them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from leeward.errors import InvalidInputError
from leeward.model.node import Taint
from leeward.model.node_repair import NOT_REPAIRED, NodeRepair

EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NoSchedule": "NoSchedule",
    "NoExecute": "NoExecute",
    "PreferNoSchedule": "PreferNoSchedule",
}  # EKS' spelling and Kubernetes' -> Kubernetes'


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
