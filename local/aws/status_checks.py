"""EC2's status checks. A test sets the instances that fail them; all others pass.

In moto they always pass, and it ignores the filters over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.instances import InstanceResponse

from local.aws.control import BadRequest, Control, Request
from local.aws.moto_backend import model_lock
from local.aws.pins import expect_parameters, replace

FILTERS = {
    "system-status.status": "SystemStatus",
    "instance-status.status": "InstanceStatus",
    "attached-ebs-status.status": "AttachedEbsStatus",
}
CHECKS = {"system": "SystemStatus", "instance": "InstanceStatus", "attached-ebs": "AttachedEbsStatus"}


class StatusChecks:
    """Failing checks by instance id: the check's field -> start of the failure."""

    def __init__(self) -> None:
        self._failing: dict[str, dict[str, datetime]] = {}

    def install(self, control: Control) -> None:
        """Patch DescribeInstanceStatus and add the route `PUT status-checks/ID`."""
        expect_parameters("moto", InstanceResponse.describe_instance_status, "self")

        def describe_instance_status(response: Any) -> ActionResult:  # moto looks up its actions among plain functions
            return self._describe(response)

        replace(InstanceResponse, describe_instance_status=describe_instance_status)
        control.add("PUT", "status-checks/{id}", self._put)

    def _put(self, request: Request) -> None:
        """Set failing checks: `{"impaired": ["system" / "instance" / "attached-ebs"], "secondsAgo"?}`; an empty list:
        all pass again.
        """
        named = request.body["impaired"]
        unknown = [name for name in named if name not in CHECKS]
        if unknown:
            raise BadRequest(f"impaired: found {unknown}, expected some of {sorted(CHECKS)}")
        since = datetime.now(UTC) - timedelta(seconds=float(request.body.get("secondsAgo") or 0))
        with model_lock:
            self._failing[request.path["id"]] = {CHECKS[name]: since for name in named}

    def _describe(self, response: Any) -> ActionResult:
        """Describe running instances, by id and by the three filters over checks; EC2 joins filters with AND."""
        asked: Mapping[str, list[str]] = response._filters_from_querystring()
        checks = {FILTERS[name]: values for name, values in asked.items() if name in FILTERS}
        others = [{"name": name, "values": values} for name, values in asked.items() if name not in FILTERS]
        ids = response._get_param("InstanceIds", [])
        running = response.ec2_backend.describe_instance_status(ids, False, others)
        found = [self._status(instance) for instance in running]
        return ActionResult({"InstanceStatuses": [status for status in found if _passes(status, checks.items())]})

    def _status(self, instance: Any) -> dict[str, Any]:
        failing = self._failing.get(instance.id, {})
        status: dict[str, Any] = {
            "InstanceId": instance.id,
            "AvailabilityZone": instance.placement["zone"] if isinstance(instance.placement, dict) else "",
            "InstanceState": {"Code": 16, "Name": "running"},
        }
        for field in CHECKS.values():
            since = failing.get(field)
            detail = {"Name": "reachability", "Status": "failed" if since else "passed"}
            status[field] = {
                "Status": "impaired" if since else "ok",
                "Details": [{**detail, "ImpairedSince": since} if since else detail],
            }
        return status


def _passes(status: Mapping[str, Any], checks: Iterable[tuple[str, list[str]]]) -> bool:
    return all(status[field]["Status"] in values for field, values in checks)
