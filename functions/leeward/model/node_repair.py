"""EKS' node auto repair of a managed node group, as DescribeNodegroup returns `nodeRepairConfig`.

Source: EKS API reference, NodeRepairConfig and NodeRepairConfigOverrides. What Leeward does with it is decided in
`leeward.reconcile.managed_repair`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


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

    def to_json(self) -> dict[str, Any]:
        """Return EKS' own document, which `from_json` reads."""
        limit = "maxUnhealthyNodeThresholdPercentage" if self.percent else "maxUnhealthyNodeThresholdCount"
        overrides = [
            {
                "nodeMonitoringCondition": one.condition,
                "nodeUnhealthyReason": one.reason,
                "minRepairWaitTimeMins": one.after,
                "repairAction": one.action,
            }
            for one in self.overrides
        ]
        return {
            "enabled": self.enabled,
            **({limit: self.most_unhealthy} if self.most_unhealthy is not None else {}),
            **({"nodeRepairConfigOverrides": overrides} if overrides else {}),
        }


NOT_REPAIRED = NodeRepair()
