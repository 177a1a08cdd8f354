"""Events of a change of a termination record, of five types.

Decides which events a change causes and what they contain; `notifications.handler` reads the changes from the table's
stream and sends the events. Because that happens after the write, no drain waits for a subscriber. A stream delivers at
least once, so the id of an event is derived from its content and repeats with it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from leeward.model.blocked import BlockedLine
from leeward.model.termination import (
    Cause,
    Outcome,
    Status,
    TerminationRecord,
    detach_deadline,
    execution_name,
    known_deadline,
)
from leeward.model.times import format_instant

SOURCE = "leeward"
MAX_BLOCKERS = 50  # an event may have 256 KiB, and more blockers are of no use
MAX_REASON_LENGTH = 1000  # characters


class EventType(StrEnum):
    """Values of an event's `detail-type` (docs/reference/events.md lists them)."""

    DETECTED = "Node Termination Detected"  # a cause, or one more, requests the termination of the node
    STARTED = "Node Termination Started"  # its pods are being evicted
    BLOCKED = "Node Termination Blocked"  # pods do not leave, or more pods than before
    FINISHED = "Node Termination Finished"  # the instance is gone, or no cause requests its termination any more
    FAILED = "Node Termination Failed"  # the node was returned to service, or a step used up its retries


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerminationEvent:
    """Event of a termination. `id`: the same when the same change is read again. `at`: when the change was written."""

    type: EventType
    id: str
    at: datetime
    record: TerminationRecord
    causes: tuple[Cause, ...]
    reason: str

    @property
    def resources(self) -> tuple[str, ...]:
        """Its instance."""
        return (self.record.instance,)

    def detail(self) -> dict[str, Any]:
        """Return the event's `detail`, and the webhook's body: plain JSON without secrets."""
        record, subject = self.record, self.record.subject
        launched = list(record.replacement.launched) if record.replacement else []
        return {
            "id": self.id,
            "event": self.type.value,
            "at": format_instant(self.at),
            "cluster": subject.cluster,
            "group": subject.group,
            "node": subject.node,
            "instance": subject.instance,
            "zone": subject.zone,
            "instanceType": subject.instance_type,
            "capacityType": subject.capacity_type.value,
            "execution": execution_name(record.instance, record.attempt),
            "causes": [_cause(cause) for cause in self.causes],
            "deadline": instant_or_none(known_deadline(record, self.at)),
            "blockers": [_blocker(line, record, self.at) for line in record.blocked_by[:MAX_BLOCKERS]],
            "replacements": launched,
            "podsEvicted": record.pods_evicted,
            "outcome": record.outcome.value if record.outcome else None,
            "why": self.reason,
        }


def events_of_change(
    before: TerminationRecord | None, after: TerminationRecord, at: datetime
) -> tuple[NodeTerminationEvent, ...]:
    """Return the events of the change, in the order in which they happened; empty for mere progress.

    `before` None: the record is new. `at`: when the change was written.
    """
    return tuple(_detected(before, after, at)) + tuple(_progressed(before, after, at))


def _detected(
    before: TerminationRecord | None, after: TerminationRecord, at: datetime
) -> Iterator[NodeTerminationEvent]:
    for cause in after.causes:
        if before is None or not before.knows(cause.id):
            yield _event(EventType.DETECTED, after, at, cause.id, reason=cause.reason, causes=(cause,))


def _progressed(
    before: TerminationRecord | None, after: TerminationRecord, at: datetime
) -> Iterator[NodeTerminationEvent]:
    old_times = before.times if before and before.attempt == after.attempt else {}
    if "draining" in after.times and "draining" not in old_times:
        yield _event(EventType.STARTED, after, at, "", reason=", ".join(cause.kind.value for cause in after.causes))
    if _blocked_pods(after) - _blocked_pods(before):
        pods = ",".join(sorted(_blocked_pods(after)))
        yield _event(EventType.BLOCKED, after, at, pods, reason="; ".join(after.blocked_by)[:MAX_REASON_LENGTH])
    if "retry" in after.times and after.times["retry"] != old_times.get("retry"):
        retry = format_instant(after.times["retry"])
        reason = f"{after.failure or 'it did not end'}; tried again at {retry}"
        yield _event(EventType.FAILED, after, at, retry, reason=reason)
    if after.status is Status.CLOSED and (before is None or before.status is Status.OPEN):
        yield _closed(after, at)


def _closed(record: TerminationRecord, at: datetime) -> NodeTerminationEvent:
    if record.outcome is Outcome.RETURNED_TO_SERVICE and record.failure:
        return _event(EventType.FAILED, record, at, "closed", reason=record.failure)
    reason = "the instance is gone and its hooks are answered"
    if record.outcome is Outcome.RETURNED_TO_SERVICE:
        reason = "no cause requests its termination any more: it is in service again"
    if record.outcome is Outcome.KEPT:
        reason = "its pods have left; the instance is kept, and its node stays cordoned"
    if record.outcome is Outcome.REBOOTED:
        reason = "it was drained and rebooted: it is in service again"
    return _event(EventType.FINISHED, record, at, "", reason=reason)


def _blocked_pods(record: TerminationRecord | None) -> frozenset[str]:
    """Return the pods that block the drain.

    Only a new pod makes an event: the text of a budget has counts, which change all the time. Load balancers and
    volumes that a node waits for are no blockers: their waits end by themselves.
    """
    lines = record.blocked_by if record else ()
    return frozenset(pod for line in lines if (pod := BlockedLine.read(line).pod) is not None)


def _event(
    event_type: EventType,
    record: TerminationRecord,
    at: datetime,
    occurrence: str,
    *,
    reason: str,
    causes: tuple[Cause, ...] | None = None,
) -> NodeTerminationEvent:
    """Build an event. `occurrence`: distinguishes events of one type in one execution; empty: there is only one."""
    digest = f"-{sha256(occurrence.encode()).hexdigest()[:12]}" if occurrence else ""
    return NodeTerminationEvent(
        type=event_type,
        id=f"{execution_name(record.instance, record.attempt)}-{event_type.name.lower()}{digest}",
        at=at,
        record=record,
        causes=record.causes if causes is None else causes,
        reason=reason,
    )


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind.value,
        "at": format_instant(cause.at),
        "deadline": instant_or_none(cause.deadline),
        "reason": cause.reason,
        "hook": cause.hook,
    }


def _blocker(line: str, record: TerminationRecord, at: datetime) -> dict[str, Any]:
    """Build one entry of `blockers`. Its `until` is the end of the wait that the line names, else the end of the drain;
    None: the wait has no end.
    """
    blocked = BlockedLine.read(line)
    ends = [moment for moment in (record.times.get("until"), detach_deadline(record, at)) if moment is not None]
    return {
        "pod": blocked.pod,
        "why": blocked.why,
        "until": instant_or_none(blocked.until or min(ends, default=None)),
    }


def instant_or_none(moment: datetime | None) -> str | None:
    """Return the moment as events write it, None for none."""
    return format_instant(moment) if moment else None
