"""CapacityRebalance and AZRebalance: a replacement is launched before an instance is terminated.

CapacityRebalance: a spot instance at risk is replaced before it is terminated, above MaxSize if necessary.

Rules from "Capacity Rebalancing" in the Auto Scaling user guide. An instance under replacement does not count for the
desired capacity; it is terminated when the replacement is in service.
"""

from __future__ import annotations

from typing import Any

from local.aws.autoscaling import shape

RECOMMENDATION = "EC2 Instance Rebalance Recommendation"
_FOR_ONE_AT_RISK = "an instance was started in response to an instance rebalance recommendation."
_FOR_BALANCE = "an instance was launched to balance instances in zones with other zones."
BALANCING = ("AZRebalance", "Launch", "Terminate")  # zones are not balanced while one of these is suspended
_AT_RISK = "an instance was taken out of service in response to an instance rebalance recommendation."


_UNEVEN = "instances were launched to balance instances with other zones, and an instance was taken out of service."


def started(state: Any) -> str:
    """Return the cause of launching a replacement."""
    return _FOR_BALANCE if getattr(state, "balances_zones", False) else _FOR_ONE_AT_RISK


def reason(state: Any) -> str:
    """Return the cause of terminating an instance whose replacement is in service."""
    return _UNEVEN if getattr(state, "balances_zones", False) else _AT_RISK


def uneven(group: Any) -> Any | None:
    """Return the oldest member of the fullest zone, where zones differ by two or more and no instance is in
    transition.
    """
    found = shape.counted(group)
    if len(found) < len(shape.serving(group)) or any(state.lifecycle_state != "InService" for state in found):
        return None
    zones = {subnet.availability_zone for subnet in shape.subnets(group)} or set(group.availability_zones)
    counts = {zone: sum(state.availability_zone == zone for state in found) for zone in sorted(zones)}
    full = max(counts, key=lambda zone: counts[zone])
    if counts[full] - min(counts.values()) < 2:
        return None
    oldest = next(state for state in found if state.availability_zone == full)
    oldest.balances_zones = True
    return oldest


def wanted(group: Any, instance_id: str) -> Any | None:
    """Return the member of the group that a recommendation replaces, None where the group ignores it."""
    if not getattr(group, "capacity_rebalance", False):
        return None
    return next((state for state in shape.counted(group) if state.instance.id == instance_id), None)


def begin(state: Any, replacement: Any) -> None:
    """Count the replacement instead of the instance from now on."""
    state.replacement = replacement.instance.id


def replaced_by(group: Any, state: Any) -> list[Any]:
    """Return the members that wait for this one to be in service."""
    return [one for one in shape.serving(group) if getattr(one, "replacement", None) == state.instance.id]


def forget(group: Any, state: Any) -> None:
    """Clear the replacement of an instance that leaves: the members that it was to replace stay."""
    for one in replaced_by(group, state):
        one.replacement = None
