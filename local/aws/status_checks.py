"""EC2's status checks and scheduled events. A test sets the instances that fail checks or have an event.

In moto checks always pass, no instance has an event, and the filters over them are ignored.
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
EVENT_CODE = "event.code"
CHECKS = {"system": "SystemStatus", "instance": "InstanceStatus", "attached-ebs": "AttachedEbsStatus"}


class StatusChecks:
    """Failing checks by instance id: the check's field -> start of the failure."""

    def __init__(self) -> None:
        self._failing: dict[str, dict[str, datetime]] = {}
        self._events: dict[str, dict[str, Any]] = {}

    def install(self, control: Control) -> None:
        """Patch DescribeInstanceStatus and add the routes `PUT status-checks/ID` and `PUT scheduled-events/ID`."""
        expect_parameters("moto", InstanceResponse.describe_instance_status, "self")

        def describe_instance_status(response: Any) -> ActionResult:  # moto looks up its actions among plain functions
            return self._describe(response)

        replace(InstanceResponse, describe_instance_status=describe_instance_status)
        control.add("PUT", "status-checks/{id}", self._put)
        control.add("PUT", "scheduled-events/{id}", self._schedule)

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

    def _schedule(self, request: Request) -> None:
        """Set the event of an instance: `{"code", "inSeconds", "description"?}`; the prefix `[Completed]` or
        `[Canceled]` of the description ends it. The date of an event that is there stays.
        """
        name = request.path["id"]
        begins = datetime.now(UTC) + timedelta(seconds=float(request.body.get("inSeconds") or 0))
        with model_lock:
            known = self._events.get(name, {})
            self._events[name] = {
                "InstanceEventId": f"instance-event-{name.removeprefix('i-')}",
                "Code": request.body["code"],
                "NotBefore": known.get("NotBefore", begins),
                "Description": request.body.get("description") or "The instance is scheduled for maintenance",
            }

    def _describe(self, response: Any) -> ActionResult:
        """Describe running instances, by id and by the three filters over checks; EC2 joins filters with AND."""
        asked: Mapping[str, list[str]] = response._filters_from_querystring()
        checks = {FILTERS[name]: values for name, values in asked.items() if name in FILTERS}
        codes = asked.get(EVENT_CODE)
        others = [
            {"name": name, "values": values} for name, values in asked.items() if name not in {*FILTERS, EVENT_CODE}
        ]
        ids = response._get_param("InstanceIds", [])
        running = response.ec2_backend.describe_instance_status(ids, False, others)
        found = [self._status(instance) for instance in running]
        return ActionResult(
            {"InstanceStatuses": [one for one in found if _passes(one, checks.items()) and _has_event(one, codes)]}
        )

    def _status(self, instance: Any) -> dict[str, Any]:
        failing = self._failing.get(instance.id, {})
        status: dict[str, Any] = {
            "InstanceId": instance.id,
            "AvailabilityZone": instance.placement["zone"] if isinstance(instance.placement, dict) else "",
            "InstanceState": {"Code": 16, "Name": "running"},
            "Events": [self._events[instance.id]] if instance.id in self._events else [],
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


def _has_event(status: Mapping[str, Any], codes: list[str] | None) -> bool:
    return codes is None or any(event["Code"] in codes for event in status["Events"])
