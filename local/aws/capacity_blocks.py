"""EC2's Capacity Blocks. A test puts instances into one; moto has no capacity reservations.

As EC2 does, a block ends its instances 30 minutes before its own end, and warns ten minutes earlier where the test does
not lose the warning. The blocks of UltraServers are not played."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ec2.responses.instances import InstanceResponse

from local.aws.control import Control, Request
from local.aws.ec2 import LIVE_STATES
from local.aws.moto_backend import model_lock
from local.aws.outbox import Event, Outbox
from local.aws.pins import expect, expect_parameters, replace
from local.aws.settings import Settings
from local.aws.timeline import Timeline

RESERVATION = "capacity-reservation-id"
WARNING = "Capacity Block Expiration Warning"
WARNED_BEFORE, TERMINATED_BEFORE = timedelta(minutes=40), timedelta(minutes=30)  # before the end of the block


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Capacity Block: its end, and the instances in it."""

    ends: datetime
    instances: tuple[str, ...]


class CapacityBlocks:
    """Capacity Blocks by reservation id."""

    def __init__(self, outbox: Outbox, timeline: Timeline, settings: Settings) -> None:
        self._outbox, self._timeline, self._settings = outbox, timeline, settings
        self._blocks: dict[str, Block] = {}

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
        """Set a block: `{"ends": RFC 3339, "instances": [ID], "warns"?: false}`; an earlier end of it has no effect any
        more. What should have happened already happens at once.
        """
        name, ends = request.path["id"], datetime.fromisoformat(request.body["ends"].replace("Z", "+00:00"))
        block = Block(ends=ends, instances=tuple(request.body["instances"]))
        with model_lock:
            self._blocks[name] = block
            for instance in self._moto(block):
                instance.capacity_reservation_id = name
        if request.body.get("warns"):
            self._at(ends - WARNED_BEFORE, lambda: self._warn(name, block))
        self._at(ends - TERMINATED_BEFORE, lambda: self._end(name, block))

    def _at(self, moment: datetime, action: Callable[[], None]) -> None:
        self._timeline.after(max((moment - datetime.now(UTC)).total_seconds(), 0.0), action)

    def _warn(self, name: str, block: Block) -> None:
        """Send the one warning, which names no instance."""
        if self._blocks.get(name) != block:
            return
        account, region = self._settings.account, self._settings.region
        self._outbox.emit(
            Event(
                source="aws.ec2",
                detail_type=WARNING,
                detail={RESERVATION: name, "end-date": block.ends.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")},
                account=account,
                region=region,
                resources=(f"arn:aws:ec2:{region}:{account}:capacity-reservation/{name}",),
            )
        )

    def _end(self, name: str, block: Block) -> None:
        """End the instances that still run, whatever runs there."""
        if self._blocks.get(name) != block:
            return
        for instance in self._moto(block):
            if instance.state in LIVE_STATES:
                instance.terminate()

    def _moto(self, block: Block) -> list[Any]:
        backend = ec2_backends[self._settings.account][self._settings.region]
        found = (backend.get_instance_by_id(name) for name in block.instances)
        return [instance for instance in found if instance is not None]

    def _describe(self) -> ActionResult:
        """Describe the blocks that have not ended; the filters that Leeward sends select just these."""
        now = datetime.now(UTC)
        blocks = [
            {
                "CapacityReservationId": name,
                "ReservationType": "capacity-block",
                "State": "active",
                "EndDateType": "limited",
                "EndDate": block.ends,
            }
            for name, block in self._blocks.items()
            if block.ends > now
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
            if name in self._blocks
            for instance in self._blocks[name].instances
        ]
        return ActionResult({"Reservations": [{"ReservationId": "r-block", "Instances": members}] if members else []})
