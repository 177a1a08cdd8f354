"""Shape of `spec.repair`, and the conditions by which it recognizes an unhealthy node that is Ready.

The defaults are EKS' node auto repair's: type, wait and action (EKS user guide, "Detect node health issues and enable
automatic node repair"). EKS reboots for some reasons of AcceleratedHardwareReady; the default replaces for all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leeward.model.node_condition import NodeCondition


class RepairAction(StrEnum):
    """Responses to a condition that has lasted long enough."""

    REPLACE = "replace"
    REBOOT = "reboot"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairCondition:
    """Condition that makes a node unhealthy. `reason`: only with this one, empty for every reason."""

    type: str
    status: str = "False"
    after: timedelta = timedelta(minutes=30)
    action: RepairAction = RepairAction.REPLACE
    reason: str = ""

    def matches(self, condition: NodeCondition) -> bool:
        """Return whether the node's condition is this one."""
        same = (self.type, self.status) == (condition.type, condition.status)
        return same and self.reason in {"", condition.reason}


DEFAULT_CONDITIONS = (
    RepairCondition(type="KernelReady"),
    RepairCondition(type="NetworkingReady"),
    RepairCondition(type="StorageReady"),
    RepairCondition(type="ContainerRuntimeReady"),
    RepairCondition(type="AcceleratedHardwareReady", after=timedelta(minutes=10)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPolicy:
    """Repair of unhealthy nodes."""

    enabled: bool = True  # False where the document has no such section
    not_ready_after: timedelta = timedelta(minutes=30)
    impaired_after: timedelta = timedelta(minutes=2)
    max_unhealthy: int = 20  # nodes, or percent of the nodes, of the zone and of the cluster
    max_unhealthy_percent: bool = True
    conditions: tuple[RepairCondition, ...] = DEFAULT_CONDITIONS  # the first that matches counts
    imports_from_eks: bool = False  # nodeRepairConfig: import; overrides and threshold of a managed group


DEFAULT_REPAIR, NO_REPAIR = RepairPolicy(), RepairPolicy(enabled=False)


def rule_for(condition: NodeCondition, rules: Iterable[RepairCondition]) -> RepairCondition | None:
    """Return the first rule that the condition matches, None if the condition makes no node unhealthy: no rule is about
    it, or the first one has no action.
    """
    rule = next((rule for rule in rules if rule.matches(condition)), None)
    return None if rule is None or rule.action is RepairAction.NONE else rule
