"""EC2's Capacity Blocks. A test puts instances into one; moto has no capacity reservations.

EC2 warns 40 minutes before the end and begins to terminate 30 minutes before; here a test sends the warning itself, and
nothing terminates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses.instances import InstanceResponse

from local.aws.control import Control, Request
from local.aws.moto_backend import model_lock
from local.aws.pins import expect, expect_parameters, replace

RESERVATION = "capacity-reservation-id"


class CapacityBlocks:
    """Capacity Blocks by reservation id: the end, and the instances in it."""

    def __init__(self) -> None:
        self._blocks: dict[str, tuple[datetime, tuple[str, ...]]] = {}

    def install(self, control: Control) -> None:
        """Patch DescribeInstances, add DescribeCapacityReservations and the route `PUT capacity-blocks/ID`."""
        expect_parameters("moto", InstanceResponse.describe_instances, "self")
        missing = not hasattr(InstanceResponse, "describe_capacity_reservations")
        expect("moto", missing, "InstanceResponse has describe_capacity_reservations of its own")

        def describe_capacity_reservations(_response: Any) -> ActionResult:
            return self._describe()

        replace(
            InstanceResponse,
            describe_capacity_reservations=describe_capacity_reservations,
            describe_instances=self._around(InstanceResponse.describe_instances),
        )
        control.add("PUT", "capacity-blocks/{id}", self._put)

    def _put(self, request: Request) -> None:
        """Set a block: `{"ends": RFC 3339, "instances": [ID]}`."""
        ends = datetime.fromisoformat(request.body["ends"].replace("Z", "+00:00"))
        with model_lock:
            self._blocks[request.path["id"]] = (ends, tuple(request.body["instances"]))

    def _describe(self) -> ActionResult:
        """Describe the blocks that have not ended; the filters that Leeward sends select just these."""
        now = datetime.now(UTC)
        blocks = [
            {
                "CapacityReservationId": name,
                "ReservationType": "capacity-block",
                "State": "active",
                "EndDateType": "limited",
                "EndDate": ends,
            }
            for name, (ends, _) in self._blocks.items()
            if ends > now
        ]
        return ActionResult({"CapacityReservations": blocks})

    def _around(self, original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
        @functools.wraps(original)
        def describe_instances(response: Any) -> ActionResult:
            wanted = response._filters_from_querystring().get(RESERVATION)
            return original(response) if wanted is None else self._members(wanted)

        return describe_instances

    def _members(self, reservations: list[str]) -> ActionResult:
        members = [
            {"InstanceId": instance, "CapacityReservationId": name}
            for name in reservations
            for instance in self._blocks.get(name, (None, ()))[1]
        ]
        return ActionResult({"Reservations": [{"ReservationId": "r-block", "Instances": members}] if members else []})
