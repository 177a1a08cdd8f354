"""Events of a change of the record of an upgrade or a disruption run, or of the pause switch.

Decides which events a change causes and what they contain, as `notifications.events` does for terminations, with the
command that comes next. The id of an event is made of its subject and what has happened to it: a step that is retried
writes the same record, and a change that is read again makes the same event."""

import shlex
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Generic, TypeVar

from leeward.disruption.record import DisruptionOutcome, DisruptionRecord
from leeward.model.pause import Pause, PauseRecord
from leeward.model.times import format_instant
from leeward.notifications.events import instant_or_none
from leeward.upgrade.record import ControlRequest, UpgradeRecord

TIME_IS_OVER = "its time is over"
MOST_COMMANDS = 20  # that an event names
LONGEST_COMMAND = 300  # characters


def upgrade_command(record: UpgradeRecord, action: str = "status") -> str:
    """Return `leeward upgrade ACTION GROUP --cluster NAME`, for a shell."""
    return f"leeward upgrade {action} {shlex.quote(record.group)} --cluster {shlex.quote(record.cluster)}"


def _failed(record: UpgradeRecord) -> str:
    start, status = upgrade_command(record, "start"), upgrade_command(record)
    return f"{start} continues it once the cause is fixed; {status} shows it"


def _paused(record: UpgradeRecord) -> str:
    if record.control is ControlRequest.PAUSE:
        return f"{upgrade_command(record, 'resume')} continues it"
    return f"leeward resume --cluster {shlex.quote(record.cluster)} ends the pause"


def _by_itself(record: UpgradeRecord) -> str:
    until = record.hold.until if record.hold is not None else None
    when = f"it continues by itself at {format_instant(until)}" if until else "it continues by itself once that is over"
    return f"{when}; {upgrade_command(record, 'abort')} ends it"


def _canary(record: UpgradeRecord) -> str:
    return f"{_by_itself(record)}, {upgrade_command(record, 'rollback')} takes it back"


GO_ON: Mapping[str, Callable[[UpgradeRecord], str]] = {
    "paused": _paused,
    "alarm": _canary,
    "window": _by_itself,
    "canary": _canary,
}
"""Ends of each kind of a hold (`upgrade.control.Hold`)."""

AFTER: Mapping[str, Callable[[UpgradeRecord], str]] = {"Upgrade Failed": _failed}
"""Commands after other events than a hold, where it is more than the status."""


def runs_command(cluster: str) -> str:
    """Return the command that shows what the next run of the cluster would do, and why nodes stay."""
    return f"leeward plan --cluster {shlex.quote(cluster)} shows what is next"


RecordT = TypeVar("RecordT", UpgradeRecord, DisruptionRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvent(Generic[RecordT]):
    """Event of an upgrade or of a disruption run."""

    type: StrEnum
    id: str  # the same when the same change is read again
    at: datetime
    record: RecordT
    reason: str

    @property
    def cluster(self) -> str:
        """Cluster of the upgrade or the run."""
        return self.record.cluster

    @property
    @abstractmethod
    def next(self) -> str:
        """Sentence with what follows, and the command for it or against it."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return the entries of the event's `detail` that only its type has."""

    def detail(self) -> dict[str, Any]:
        """Return the event's `detail`, and the webhook's body: plain JSON without secrets."""
        return {
            "id": self.id,
            "event": self.type.value,
            "at": format_instant(self.at),
            "cluster": self.cluster,
            **self.facts(),
            "why": self.reason,
            "next": self.next,
        }


def _event_id(kind: str, event_type: StrEnum, about: str) -> str:
    digest = sha256(about.encode()).hexdigest()[:12]
    return f"{kind}-{event_type.name.lower().replace('_', '-')}-{digest}"


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
class UpgradeEvent(WorkflowEvent[UpgradeRecord]):
    """Event of an upgrade."""

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

    def facts(self) -> dict[str, Any]:
        """Return what the upgrade has done and what holds it."""
        record, hold = self.record, self.record.hold
        return {
            "group": record.group,
            "execution": record.execution or None,
            "by": record.requested_by or None,
            "automatic": record.request.automatic or None,
            "target": target_of(record),
            "nodes": {"size": record.desired, "replaced": record.finished, "failed": len(set(record.failed))},
            "hold": {"kind": hold.kind, "until": instant_or_none(hold.until)} if hold is not None else None,
            "outcome": outcome_of(record),
        }


def events_of_upgrades(before: UpgradeRecord | None, after: UpgradeRecord, at: datetime) -> tuple[UpgradeEvent, ...]:
    """Return the events of the change, in the order in which they happened; empty for mere progress. `before` None:
    the group had no upgrade; `at`: when the change was written.
    """
    return tuple(_of_upgrade(before, after, at))


def _of_upgrade(before: UpgradeRecord | None, after: UpgradeRecord, at: datetime) -> Iterator[UpgradeEvent]:
    same = before is not None and before.began == after.began
    ran = same and before is not None and before.runs
    if after.runs and not ran:
        yield _upgrade_event(UpgradeEventType.STARTED, after, at, str(after.attempt), reason=_start_of_upgrade(after))
    if before is not None and ran and after.runs:
        yield from _changed_upgrade(before, after, at)
    if not after.runs and ran:
        yield _end_of_upgrade(after, at)


def _changed_upgrade(before: UpgradeRecord, after: UpgradeRecord, at: datetime) -> Iterator[UpgradeEvent]:
    """Yield the events of an upgrade that ran before the change and runs after it."""
    rollback = ControlRequest.ROLLBACK
    if after.control is rollback and before.control is not rollback:
        warning = after.warnings[-1] if after.warnings != before.warnings and after.warnings else ""
        reason = warning or f"requested by {after.requested_by or 'its policy'}"
        yield _upgrade_event(UpgradeEventType.ROLLING_BACK, after, at, str(after.version), reason=reason)
    kind = after.hold.kind if after.hold is not None else None
    if after.hold is not None and (before.hold is None or before.hold.kind != kind):
        yield _upgrade_event(UpgradeEventType.HELD, after, at, format_instant(after.hold.since), reason=after.hold.why)
    if before.hold is not None and after.hold is None and after.rolling_back is before.rolling_back:
        since = format_instant(before.hold.since)
        reason = f"it continues, after: {before.hold.why}"
        yield _upgrade_event(UpgradeEventType.RESUMED, after, at, since, reason=reason)


def _end_of_upgrade(record: UpgradeRecord, at: datetime) -> UpgradeEvent:
    outcome = outcome_of(record)
    if outcome in {"failed", "stopped"}:
        kind, reason = UpgradeEventType.FAILED, record.error or record.why
    elif outcome == "rolled-back":
        kind, reason = UpgradeEventType.ROLLED_BACK, record.why
    else:
        kind, reason = UpgradeEventType.FINISHED, record.why
    return _upgrade_event(kind, record, at, str(record.attempt), reason=reason)


def outcome_of(record: UpgradeRecord) -> str | None:
    """Return how the last start ended: upgraded, rolled-back, aborted, failed or stopped; None while it runs."""
    if record.ended is None:
        return "stopped" if record.stopped is not None else None
    if record.error:
        return "failed"
    if record.control is ControlRequest.ABORT:
        return "aborted"
    return "rolled-back" if record.rolling_back else "upgraded"


def _start_of_upgrade(record: UpgradeRecord) -> str:
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


def _upgrade_event(
    event_type: UpgradeEventType, record: UpgradeRecord, at: datetime, occurrence: str, *, reason: str
) -> UpgradeEvent:
    """Build an event. `occurrence`: distinguishes events of one type in one upgrade."""
    about = f"{record.cluster}#{record.group}#{record.stamp}#{occurrence}"
    id = _event_id("upgrade", event_type, about)
    return UpgradeEvent(type=event_type, id=id, at=at, record=record, reason=reason)


class RunEventType(StrEnum):
    """Values of an event's `detail-type` (docs/reference/events.md lists them)."""

    STARTED = "Disruption Run Started"  # its nodes are claimed
    FINISHED = "Disruption Run Finished"  # its nodes are gone, or were returned to service
    DROPPED = "Disruption Run Dropped"  # nothing was disrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent(WorkflowEvent[DisruptionRecord]):
    """Event of a disruption run."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Its cluster and the groups of its nodes."""
        return (self.record.cluster, *self.record.groups)

    @property
    def next(self) -> str:
        """The command that shows more."""
        return runs_command(self.record.cluster)

    def facts(self) -> dict[str, Any]:
        """Return what the run has planned and done."""
        record = self.record
        commands = [
            f"{command.decision.value} {', '.join(command.nodes)}" for command in record.commands[:MOST_COMMANDS]
        ]
        return {
            "group": record.groups[0] if len(record.groups) == 1 else None,
            "groups": list(record.groups),
            "execution": record.execution or None,
            "run": record.number,
            "method": record.method.value,
            "by": record.requested_by or None,
            "commands": [command[:LONGEST_COMMAND] for command in commands],
            "nodes": {"planned": len(record.nodes), "gone": len(record.gone), "launched": len(record.launched)},
            "dollarsSavedPerHour": dollars_of(record),
            "outcome": record.outcome.value if record.outcome is not None else None,
        }


def dollars_of(record: DisruptionRecord) -> float | None:
    """Return what an ended run saves in dollars an hour, by the prices of its plan; None where that is not known."""
    return round(sum(dollars for _, dollars in record.saved), 4) if record.saved else None


def events_of_runs(before: DisruptionRecord | None, after: DisruptionRecord, at: datetime) -> tuple[RunEvent, ...]:
    """Return the events of the change. `before` None: the cluster had no run; `at`: when the change was written."""
    return tuple(_of_run(before, after, at))


def _of_run(before: DisruptionRecord | None, after: DisruptionRecord, at: datetime) -> Iterator[RunEvent]:
    same = before is not None and before.number == after.number
    if not same:
        yield _run_event(RunEventType.STARTED, after, at, reason=_start_of_run(after))
    if not after.open and (not same or (before is not None and before.open)):
        done = after.outcome is DisruptionOutcome.DONE
        yield _run_event(RunEventType.FINISHED if done else RunEventType.DROPPED, after, at, reason=after.why)


def _start_of_run(record: DisruptionRecord) -> str:
    by = f"started by {record.requested_by}" if record.requested_by else "started by its policy"
    reasons = "; ".join(dict.fromkeys(command.reason for command in record.commands))
    return f"{record.summary}: {by}: {reasons}"[:LONGEST_COMMAND]


def _run_event(event_type: RunEventType, record: DisruptionRecord, at: datetime, *, reason: str) -> RunEvent:
    """Build an event. Each type happens once in a run, which the time of its beginning distinguishes from runs of an
    earlier table.
    """
    about = f"{record.cluster}#{record.number}#{format_instant(record.began)}"
    return RunEvent(type=event_type, id=_event_id("run", event_type, about), at=at, record=record, reason=reason)


class PauseEventType(StrEnum):
    """Values of an event's `detail-type` (docs/reference/events.md lists them)."""

    PAUSED = "Pause Announced"  # a cluster or a group is paused; again each day while that has no end
    RESUMED = "Pause Ended"  # by a person, or by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseEvent:
    """Event of a pause."""

    type: PauseEventType
    id: str  # the same when the same change is read again
    at: datetime
    cluster: str
    pause: Pause
    by: str  # the writer; empty: time alone has changed it
    reason: str  # of the writer

    @property
    def resources(self) -> tuple[str, ...]:
        """Cluster, and group where it is about one."""
        return (self.cluster, self.pause.group) if self.pause.group else (self.cluster,)

    def detail(self) -> dict[str, Any]:
        """Return the event's `detail`, and the webhook's body: plain JSON without secrets."""
        pause = self.pause
        return {
            "id": self.id,
            "event": self.type.value,
            "at": format_instant(self.at),
            "cluster": self.cluster,
            "group": pause.group or None,
            "scope": pause.scope.value,
            "since": format_instant(pause.since),
            "until": instant_or_none(pause.until),
            "by": self.by or None,
            "why": self.reason,
        }


def events_of_pauses(before: PauseRecord | None, after: PauseRecord, at: datetime) -> tuple[PauseEvent, ...]:
    """Return the events of the change. `before` None: there was no record; `at`: when the change was written."""
    return tuple(_announced(before, after, at)) + tuple(_ended(before, after, at))


def _announced(before: PauseRecord | None, after: PauseRecord, at: datetime) -> Iterator[PauseEvent]:
    known = frozenset(before.pauses) if before else frozenset()
    for pause in after.pauses:
        if pause not in known:
            yield _pause_event(PauseEventType.PAUSED, after, pause, at, by=pause.by, reason=pause.why)


def _ended(before: PauseRecord | None, after: PauseRecord, at: datetime) -> Iterator[PauseEvent]:
    for pause in before.pauses if before else ():
        if after.of_group(pause.group) is None:
            yield _pause_event(PauseEventType.RESUMED, after, pause, at, by=after.by, reason=after.why or TIME_IS_OVER)


def _pause_event(
    event_type: PauseEventType, record: PauseRecord, pause: Pause, at: datetime, *, by: str, reason: str
) -> PauseEvent:
    """Build an event. A record's version and the group name one change of one pause."""
    return PauseEvent(
        type=event_type,
        id=_event_id("pause", event_type, f"{record.cluster}#{record.version}#{pause.group}"),
        at=at,
        cluster=record.cluster,
        pause=pause,
        by=by,
        reason=reason,
    )
