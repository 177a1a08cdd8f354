"""Scaling activities of a group, as DescribeScalingActivities shows them: each attempt and its result."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from local.aws.autoscaling.hooks import GroupKey

_KEPT = 200


class Activities:
    """Latest activities of each group, newest first when read."""

    def __init__(self) -> None:
        self._by_group: dict[GroupKey, deque[dict[str, Any]]] = {}

    def begin(self, key: GroupKey, group: Any, *, description: str, cause: str, instance: Any | None) -> dict[str, Any]:
        """Open an activity; ``instance`` is moto's, or None when none could be launched."""
        now = datetime.now(UTC)
        place = {}
        if instance is not None:
            place = {"Availability Zone": instance.availability_zone, "Subnet ID": instance.subnet_id}
        activity = {
            "ActivityId": str(uuid4()),
            "AutoScalingGroupName": group.name,
            "AutoScalingGroupARN": group.arn,
            "Description": description,
            "Cause": cause,
            "StartTime": now,
            "EndTime": now,
            "StatusCode": "InProgress",
            "StatusMessage": "",
            "Progress": 0,
            "InstanceId": instance.id if instance is not None else None,
            "Place": place,
        }
        self._by_group.setdefault(key, deque(maxlen=_KEPT)).appendleft(activity)
        return activity

    def end(self, activity: dict[str, Any], status: str, message: str = "") -> None:
        """Close an activity as ``Successful``, ``Failed`` or ``Cancelled``."""
        activity.update(EndTime=datetime.now(UTC), StatusCode=status, StatusMessage=message, Progress=100)

    def of(self, key: GroupKey) -> list[dict[str, Any]]:
        """Return a group's activities, newest first."""
        return list(self._by_group.get(key, ()))

    def forget(self, key: GroupKey) -> None:
        """Drop everything about a group."""
        self._by_group.pop(key, None)
