"""Lookup of the group or instance that a request names; a missing one is a ValidationError, as on AWS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moto.autoscaling.exceptions import ValidationError


def group_of(response: Any, parameters: Mapping[str, Any]) -> Any:
    """Return the group named by AutoScalingGroupName. Raises moto's ``ValidationError``."""
    name = parameters.get("AutoScalingGroupName")
    group = response.autoscaling_backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")
    return group


def instance_of(response: Any, instance_id: str) -> Any:
    """Return the group's record of an instance. Raises moto's ``ValidationError``."""
    found = response.autoscaling_backend.describe_auto_scaling_instances([instance_id])
    if not found:
        raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance_id}")
    return found[0]
