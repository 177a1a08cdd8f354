"""Wait of a drained node for the reboot that EC2 has scheduled (`interruption.systemReboot: wait`).

EC2 may reboot it at any time from the date on, move the date, or cancel the event. The event's own state ends the wait;
a boot id that has changed before is some other reboot."""

from dataclasses import dataclass, replace
from datetime import datetime

from leeward.model.instance_status import ScheduledEvent
from leeward.model.node import Node
from leeward.model.termination import BACK_WITHIN, Reboot, RebootBy, TerminationRecord
from leeward.termination import decisions
from leeward.termination.run import Next, Run

LOOKS_EVERY = 30.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Inputs of one look. `before`: boot id at the beginning of the drain; `missing`: what the node lacks after a
    reboot, empty if it is back; `events`: EC2's scheduled events of the instance.
    """

    record: TerminationRecord
    node: Node
    before: str
    missing: str
    events: tuple[ScheduledEvent, ...]


def next_step(run: Run, wait: Wait, now: datetime) -> Run:
    """Return the next step: rebooted, cancel (the event is over, and the node was not rebooted), replace (it does not
    become Ready), or wait.
    """
    starts, node = _starts(wait.record, now), wait.node
    reboots = [event for event in wait.events if event.reboots]
    listed, late = any(not event.over for event in reboots), now >= starts + BACK_WITHIN
    if not wait.missing and (late or not listed):
        return replace(run, next=Next.REBOOTED, why="EC2 has rebooted it: it is Ready with a new boot id")
    if node.ready and node.boot == wait.before and not listed:
        if any(event.canceled for event in reboots):
            return replace(run, next=Next.CANCEL, why="EC2 has canceled the reboot")
        if late:
            return replace(run, next=Next.CANCEL, why="EC2 no longer lists the reboot, and has not rebooted it")
    silent = node.not_ready_since
    if not node.ready and late and silent is not None and now >= silent + BACK_WITHIN:
        return replace(run, next=Next.REPLACE, why=f"{wait.missing} {int(BACK_WITHIN.total_seconds() // 60)} min later")
    limits = [moment for moment in (starts, starts + BACK_WITHIN) if moment > now]
    pause = decisions.pause_seconds(waited=BACK_WITHIN, hint=LOOKS_EVERY, limits=limits, now=now)
    return replace(
        run, next=Next.WAIT, pause=pause, why=f"waits for EC2's reboot at {starts:%H:%M:%SZ}: {wait.missing}"
    )


def _starts(record: TerminationRecord, now: datetime) -> datetime:
    """Return the latest date that was announced: EC2 moves reboots, usually to a later one."""
    by_ec2 = (cause for cause in record.causes if cause.reboot == Reboot(by=RebootBy.EC2))
    return max((cause.deadline for cause in by_ec2 if cause.deadline is not None), default=now)
