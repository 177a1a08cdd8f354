"""Events of a change of an upgrade's record: it starts, is held, continues, is rolled back, or ends.

Decides which events a change causes and what they contain, as `notifications.events` does for terminations. The id of
an event is made of the group, the upgrade and what has happened to it: a step that is retried writes the same record,
and a change that is read again makes the same event."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from leeward.model.times import format_instant
from leeward.notifications.next_commands import AFTER, GO_ON, upgrade_command
from leeward.upgrade.record import ControlRequest, UpgradeRecord


class UpgradeEventType(StrEnum):
    """Values of an event's `detail-type` (docs/reference/events.md lists them)."""

    STARTED = "Upgrade Started"  # by a person or by update.auto; once for each start that is not a takeover
    HELD = "Upgrade Held"  # no further node starts: a pause, an alarm, a window, a canary that is watched
    RESUMED = "Upgrade Resumed"  # nothing holds it any more
    ROLLING_BACK = "Upgrade Rollback Started"  # of an upgrade that runs, by a person or for an alarm
    FAILED = "Upgrade Failed"  # it ended with an error, or its execution was stopped
    FINISHED = "Upgrade Finished"  # every old node is replaced, or it was aborted
    ROLLED_BACK = "Upgrade Rolled Back"  # a rollback has ended


ENDS = frozenset({UpgradeEventType.FAILED, UpgradeEventType.FINISHED, UpgradeEventType.ROLLED_BACK})
STARTS = {
    ControlRequest.RUN: "it replaces the old nodes of the group",
    ControlRequest.PAUSE: "it is paused: no node starts",
    ControlRequest.ABORT: "it ends an earlier start: old nodes return to service",
    ControlRequest.ROLLBACK: "it rolls the group back to its earlier version",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeEvent:
    """Event of an upgrade. `id`: the same when the same change is read again."""

    type: UpgradeEventType
    id: str
    at: datetime
    record: UpgradeRecord
    reason: str

    @property
    def cluster(self) -> str:
        """Cluster of the group."""
        return self.record.cluster

    @property
    def resources(self) -> tuple[str, ...]:
        """Its group."""
        return (self.record.group,)

    @property
    def next(self) -> str:
        """Sentence with what follows, and the command for it or against it."""
        record = self.record
        if self.type is UpgradeEventType.HELD and record.hold is not None:
            return GO_ON[record.hold.kind](record)
        return AFTER.get(self.type.value, upgrade_command)(record)

    def detail(self) -> dict[str, Any]:
        """Return the event's `detail`, and the webhook's body: plain JSON without secrets."""
        record, hold = self.record, self.record.hold
        return {
            "id": self.id,
            "event": self.type.value,
            "at": format_instant(self.at),
            "cluster": record.cluster,
            "group": record.group,
            "execution": record.execution or None,
            "by": record.requested_by or None,
            "automatic": record.request.automatic or None,
            "target": target_of(record),
            "nodes": {"size": record.desired, "replaced": record.finished, "failed": len(set(record.failed))},
            "hold": {"kind": hold.kind, "until": _instant(hold.until)} if hold is not None else None,
            "outcome": outcome_of(record),
            "why": self.reason,
            "next": self.next,
        }


def events_of_upgrades(before: UpgradeRecord | None, after: UpgradeRecord, at: datetime) -> tuple[UpgradeEvent, ...]:
    """Return the events of the change, in the order in which they happened; empty for mere progress. `before` None:
    the group had no upgrade; `at`: when the change was written.
    """
    return tuple(_events(before, after, at))


def _events(before: UpgradeRecord | None, after: UpgradeRecord, at: datetime) -> Iterator[UpgradeEvent]:
    same = before is not None and before.began == after.began
    ran = same and before is not None and before.runs
    if after.runs and not ran:
        yield _event(UpgradeEventType.STARTED, after, at, str(after.attempt), reason=_start(after))
    if before is not None and ran and after.runs:
        yield from _changed(before, after, at)
    if not after.runs and ran:
        yield _end(after, at)


def _changed(before: UpgradeRecord, after: UpgradeRecord, at: datetime) -> Iterator[UpgradeEvent]:
    """Yield the events of an upgrade that ran before the change and runs after it."""
    rollback = ControlRequest.ROLLBACK
    if after.control is rollback and before.control is not rollback:
        warning = after.warnings[-1] if after.warnings != before.warnings and after.warnings else ""
        reason = warning or f"requested by {after.requested_by or 'its policy'}"
        yield _event(UpgradeEventType.ROLLING_BACK, after, at, str(after.version), reason=reason)
    kind = after.hold.kind if after.hold is not None else None
    if after.hold is not None and (before.hold is None or before.hold.kind != kind):
        yield _event(UpgradeEventType.HELD, after, at, format_instant(after.hold.since), reason=after.hold.why)
    if before.hold is not None and after.hold is None and after.rolling_back is before.rolling_back:
        since = format_instant(before.hold.since)
        reason = f"it continues, after: {before.hold.why}"
        yield _event(UpgradeEventType.RESUMED, after, at, since, reason=reason)


def _end(record: UpgradeRecord, at: datetime) -> UpgradeEvent:
    outcome = outcome_of(record)
    if outcome in {"failed", "stopped"}:
        kind, reason = UpgradeEventType.FAILED, record.error or record.why
    elif outcome == "rolled-back":
        kind, reason = UpgradeEventType.ROLLED_BACK, record.why
    else:
        kind, reason = UpgradeEventType.FINISHED, record.why
    return _event(kind, record, at, str(record.attempt), reason=reason)


def outcome_of(record: UpgradeRecord) -> str | None:
    """Return how the last start ended: upgraded, rolled-back, aborted, failed or stopped; None while it runs."""
    if record.ended is None:
        return "stopped" if record.stopped is not None else None
    if record.error:
        return "failed"
    if record.control is ControlRequest.ABORT:
        return "aborted"
    return "rolled-back" if record.rolling_back else "upgraded"


def _start(record: UpgradeRecord) -> str:
    reason = STARTS[record.control]
    if record.request.automatic and not record.requested_by:
        return f"{reason}: update.auto of its policy starts it for image {record.request.automatic}"
    return f"{reason}: started by {record.requested_by or 'a person'}"


def target_of(record: UpgradeRecord) -> str:
    """Return what the nodes shall become: what the request names, else the group's launch template."""
    request = record.request
    if record.prepared and record.target.template is not None:
        return record.target.template.label
    if request.kubernetes:
        return f"Kubernetes {request.kubernetes}"
    image = request.image or request.automatic
    version = f"launch template version {request.template_version}" if request.template_version else ""
    return image or version or "the group's launch template"


def _event(
    event_type: UpgradeEventType, record: UpgradeRecord, at: datetime, occurrence: str, *, reason: str
) -> UpgradeEvent:
    """Build an event. `occurrence`: distinguishes events of one type in one upgrade."""
    about = f"{record.cluster}#{record.group}#{record.stamp}#{occurrence}"
    return UpgradeEvent(
        type=event_type,
        id=f"upgrade-{event_type.name.lower().replace('_', '-')}-{sha256(about.encode()).hexdigest()[:12]}",
        at=at,
        record=record,
        reason=reason,
    )


def _instant(moment: datetime | None) -> str | None:
    return format_instant(moment) if moment else None
