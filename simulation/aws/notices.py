"""Notices of AWS about instances: spot and reservation warnings, rebalance recommendations, maintenance."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from leeward.model.instance_status import CANCELED, COMPLETED, ScheduledEvent
from simulation.asked import Asked, Kind
from simulation.aws import events
from simulation.aws.compute import SimInstance
from simulation.aws.listeners import Listeners
from simulation.timeline import Timeline

if TYPE_CHECKING:
    from simulation.aws.fleet import SimFleet

SPOT_NOTICE = 120.0
RESERVED = "cr-0f00d"  # an interruptible capacity reservation
SYSTEM_REBOOT = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"
BLOCK_WARNS, BLOCK_TERMINATES = 600.0, 1800.0  # seconds: the warning before the end of instances, that before the end


class Notices:
    """Notices about the instances of a fleet, and what EC2 and the group do after each."""

    def __init__(self, fleet: "SimFleet", timeline: Timeline, to: Listeners) -> None:
        self._fleet, self._timeline, self._to = fleet, timeline, to
        self.scheduled: dict[str, ScheduledEvent] = {}  # reboots by instance, as EC2 lists them
        self._maintained: dict[str, dict[str, ScheduledEvent]] = {}  # maintenance by instance and Health event
        self._blocks: dict[str, datetime] = {}  # Capacity Block -> its end

    def spot_warning(self, member: SimInstance) -> None:
        """Send the warning now and terminate two minutes later, whatever any controller does in between."""
        now = self._timeline.now()
        self._to.asked(Asked(at=now, instance=member.id, kind=Kind.SPOT, takes=now + SPOT_NOTICE))
        self._fleet.emit(events.spot_warning, member.id)
        self._timeline.after(SPOT_NOTICE, lambda: self._fleet.end_instance(member, direct=True), "spot reclaim")

    def reservation_warning(self, member: SimInstance) -> None:
        """Take its capacity reservation back: the warning now, the end two minutes later."""
        now = self._timeline.now()
        takes, member.reservation = now + SPOT_NOTICE, member.reservation or RESERVED
        self._to.asked(Asked(at=now, instance=member.id, kind=Kind.RESERVATION, takes=takes))
        reported = self._timeline.instant()
        self._to.emit(
            events.reservation_warning(self._fleet.emit_id(), member.id, reported, datetime.fromtimestamp(takes, UTC))
        )
        self._timeline.after(
            SPOT_NOTICE, lambda: self._fleet.end_instance(member, direct=True), "reservation taken back"
        )

    def capacity_block(self, members: Sequence[SimInstance], ends: float, *, warns: bool) -> None:
        """Put the instances into a Capacity Block, warn 40 minutes before its end, and end them 30 minutes before it.
        `warns` False: the warning is lost.
        """
        name, end = f"cr-{len(self._blocks):017x}", datetime.fromtimestamp(ends, UTC).replace(microsecond=0)
        self._blocks[name] = end
        now, takes = self._timeline.now(), end.timestamp() - BLOCK_TERMINATES
        for member in members:
            member.reservation = name
            self._to.asked(Asked(at=now, instance=member.id, kind=Kind.BLOCK, key=name, takes=takes))
            self._end_with_block(member, takes - now)

        def warn() -> None:
            self._to.emit(events.capacity_block(self._fleet.emit_id(), name, self._timeline.instant(), end))

        if warns:
            self._timeline.after(max(takes - BLOCK_WARNS - now, 0.0), warn, "a Capacity Block ends soon")

    def _end_with_block(self, member: SimInstance, seconds: float) -> None:
        self._timeline.after(seconds, lambda: self._fleet.end_instance(member, direct=True), "a Capacity Block ends")

    def blocks(self) -> dict[str, datetime]:
        """Return the active Capacity Blocks and their ends."""
        return {name: end for name, end in self._blocks.items() if end > self._timeline.instant()}

    def rebalance_recommendation(self, member: SimInstance) -> None:
        """Send a recommendation. A group with CapacityRebalance launches another and terminates this one when that is
        in service.
        """
        self._to.asked(Asked(at=self._timeline.now(), instance=member.id, kind=Kind.REBALANCE))
        self._fleet.emit(events.rebalance, member.id)
        group = self._fleet.groups[member.group]
        lacks = group.template.lacks(group.version) or "Launch" in group.suspended
        if not group.plan.capacity_rebalance or lacks:
            return
        if not member.leaving and member.id not in group.replacing:
            group.replacing[member.id] = self._fleet.launch(group, member.zone).id

    def zonal_shift(self, detail_type: str, zone_id: str) -> None:
        """Send ARC's event of a shift away from the zone."""
        self._fleet.emit(events.zonal_shift, detail_type, zone_id)

    def maintenance(self, member: SimInstance, starts: float, arn: str = "") -> str:
        """Announce maintenance by AWS Health, again where `arn` names an event that is known; return the
        event's ARN.
        """
        now, begins = self._timeline.instant(), datetime.fromtimestamp(starts, UTC)
        event = events.maintenance(self._fleet.emit_id(), member.id, now, begins)
        event["detail"]["eventArn"] = arn = arn or str(event["detail"]["eventArn"])
        self._to.asked(Asked(at=now.timestamp(), instance=member.id, kind=Kind.MAINTENANCE, key=arn, takes=starts))
        self.list_maintenance(member, starts, arn)
        self._to.emit(event)
        return arn

    def list_maintenance(self, member: SimInstance, starts: float, key: str) -> None:
        """Let EC2 list maintenance that AWS Health announces under this key, or move it to another date."""
        begins = datetime.fromtimestamp(starts, UTC).replace(microsecond=0)
        listed = ScheduledEvent(id=key, instance=member.id, code="instance-retirement", starts=begins)
        self._maintained.setdefault(member.id, {})[key] = listed

    def cancel_maintenance(self, member: SimInstance, key: str, *, heard: bool) -> None:
        """Cancel maintenance: EC2 lists it as canceled, and AWS Health closes its event where that is `heard`."""
        listed = self._maintained[member.id][key]
        self._maintained[member.id][key] = replace(listed, description=f"{CANCELED} The instance is retired")
        now, starts = self._timeline.instant(), listed.starts or self._timeline.instant()
        asked = Asked(at=now.timestamp(), instance=member.id, kind=Kind.MAINTENANCE, key=key, called_off=True)
        self._to.asked(asked)
        if heard:
            event = events.maintenance(self._fleet.emit_id(), member.id, now, starts)
            event["detail"] |= {"eventArn": key, "statusCode": "closed"}
            self._to.emit(event)

    def listed(self) -> dict[str, tuple[ScheduledEvent, ...]]:
        """Return EC2's scheduled events by instance. Maintenance whose date has passed is completed."""
        now = self._timeline.instant()
        found = {name: [event] for name, event in self.scheduled.items()}
        for name, events_of in self._maintained.items():
            found.setdefault(name, []).extend(
                event
                if event.canceled or (event.starts and event.starts > now)
                else replace(event, description=COMPLETED)
                for event in events_of.values()
            )
        return {name: tuple(events_of) for name, events_of in found.items()}

    def reboot(self, member: SimInstance, starts: float, *, lost: bool) -> None:
        """Schedule a reboot, which EC2 lists; `lost`: AWS Health's message about it never comes."""
        now, begins = self._timeline.instant(), datetime.fromtimestamp(starts, UTC).replace(microsecond=0)
        name = f"instance-event-{self._fleet.emit_id()}"
        self.scheduled[member.id] = ScheduledEvent(id=name, instance=member.id, code="system-reboot", starts=begins)
        self._to.asked(
            Asked(at=now.timestamp(), instance=member.id, kind=Kind.MAINTENANCE, key=name, takes=begins.timestamp())
        )
        if not lost:
            self._to.emit(events.maintenance(self._fleet.emit_id(), member.id, now, begins, SYSTEM_REBOOT))

    def reboot_over(self, member: SimInstance, *, canceled: bool) -> None:
        """List the reboot as completed, or canceled."""
        prefix = CANCELED if canceled else COMPLETED
        self.scheduled[member.id] = replace(self.scheduled[member.id], description=f"{prefix} The host is rebooted")
