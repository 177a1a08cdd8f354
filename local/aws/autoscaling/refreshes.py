"""Instance refreshes. They are recorded so that a running one can be found, but never carried out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from moto.autoscaling.exceptions import AutoscalingClientError
from moto.core.responses import ActionResult


class RefreshInProgress(AutoscalingClientError):
    """Error: a refresh is already running."""

    code = "InstanceRefreshInProgress"
    message = "An Instance Refresh is already in progress and blocks the execution of this Instance Refresh."


class NoActiveRefresh(AutoscalingClientError):
    """Error: there is no refresh to cancel."""

    code = "ActiveInstanceRefreshNotFound"
    message = "No in progress or pending Instance Refresh found for Auto Scaling group."


class InstanceRefreshes:
    """Refreshes of each group, newest first."""

    def start(self, response: Any, parameters: dict[str, Any]) -> ActionResult:
        """Answer StartInstanceRefresh: the refresh stays InProgress until it is cancelled."""
        refreshes = self._of(response, parameters)
        if _active(refreshes):
            raise RefreshInProgress
        refresh = {
            "InstanceRefreshId": str(uuid4()),
            "AutoScalingGroupName": parameters["AutoScalingGroupName"],
            "Status": "InProgress",
            "StartTime": datetime.now(UTC),
            "PercentageComplete": 0,
        }
        refreshes.insert(0, refresh)
        return ActionResult({"InstanceRefreshId": refresh["InstanceRefreshId"]})

    def cancel(self, response: Any, parameters: dict[str, Any]) -> ActionResult:
        """Answer CancelInstanceRefresh."""
        active = _active(self._of(response, parameters))
        if active is None:
            raise NoActiveRefresh
        active.update(Status="Cancelled", EndTime=datetime.now(UTC))
        return ActionResult({"InstanceRefreshId": active["InstanceRefreshId"]})

    def describe(self, response: Any, parameters: dict[str, Any]) -> ActionResult:
        """Answer DescribeInstanceRefreshes."""
        return ActionResult({"InstanceRefreshes": list(self._of(response, parameters))})

    def _of(self, response: Any, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        group = response.autoscaling_backend.autoscaling_groups[parameters["AutoScalingGroupName"]]
        if not hasattr(group, "local_refreshes"):
            group.local_refreshes = []
        refreshes: list[dict[str, Any]] = group.local_refreshes
        return refreshes


def _active(refreshes: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((refresh for refresh in refreshes if refresh["Status"] == "InProgress"), None)
