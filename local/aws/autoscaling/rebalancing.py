"""CapacityRebalance: a spot instance at risk is replaced before it is ended, above MaxSize where it must be.

Rules from "Capacity Rebalancing" in the Auto Scaling user guide. An instance under replacement does not count for the
desired capacity; it is ended when the replacement is in service.
"""

from __future__ import annotations

from typing import Any

from local.aws.autoscaling import shape

RECOMMENDATION = "EC2 Instance Rebalance Recommendation"
STARTED = "an instance was started in response to an instance rebalance recommendation."
REASON = "an instance was taken out of service in response to an instance rebalance recommendation."


def wanted(group: Any, instance_id: str) -> Any | None:
    """The member of the group that a recommendation is to replace, None where the group does nothing about it."""
    if not getattr(group, "capacity_rebalance", False):
        return None
    return next((state for state in shape.counted(group) if state.instance.id == instance_id), None)


def begin(state: Any, replacement: Any) -> None:
    """From now on the replacement counts in the place of the instance."""
    state.replacement = replacement.instance.id


def replaced_by(group: Any, state: Any) -> list[Any]:
    """The members that wait for this one to be in service."""
    return [one for one in shape.serving(group) if getattr(one, "replacement", None) == state.instance.id]


def forget(group: Any, state: Any) -> None:
    """An instance leaves: whatever it was to replace stays."""
    for one in replaced_by(group, state):
        one.replacement = None
