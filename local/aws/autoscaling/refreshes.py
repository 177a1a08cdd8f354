"""Instance refreshes. Rolling ones are recorded so that a running one can be found, but never carried out; those that
replace root volumes are (``root_volumes``)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from moto.autoscaling.exceptions import AutoscalingClientError
from moto.core.responses import ActionResult

from local.aws.autoscaling.engine import Engine
from local.aws.autoscaling.lookups import group_of
from local.aws.autoscaling.root_volumes import REPLACE_ROOT_VOLUME, replace_root_volumes


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

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def start(self, response: Any, parameters: dict[str, Any]) -> ActionResult:
        """Answer StartInstanceRefresh: a rolling refresh stays InProgress until it is cancelled."""
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
        if parameters.get("Strategy") == REPLACE_ROOT_VOLUME:
            replace_root_volumes(self._engine, group_of(response, parameters), refresh)
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
