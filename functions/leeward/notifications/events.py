"""Events of a change of a termination record: five kinds, each once for every change that means it.

Read from the table's stream, after the change is written, so that no drain waits for a subscriber. A stream delivers at
least once: the id of an event is derived from its content and is the same every time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from leeward.model.blocked import BlockedLine
from leeward.model.deadlines import detach_deadline, known_deadline
from leeward.model.termination import Cause, Outcome, Status, TerminationRecord, execution_name
from leeward.model.times import format_instant

SOURCE = "leeward"
MOST_BLOCKERS = 50  # an event holds 256 KiB, and more are not useful
LONGEST_WHY = 1000


class EventType(StrEnum):
    """Values of an event's `detail-type` (docs/operations.md lists them)."""

    DETECTED = "Node Termination Detected"  # a cause, or one more, requests the termination of the node
    STARTED = "Node Termination Started"  # its pods are being evicted
    BLOCKED = "Node Termination Blocked"  # pods do not leave, or more pods than before
    FINISHED = "Node Termination Finished"  # the instance is gone, or no cause requests its termination any more
    FAILED = "Node Termination Failed"  # the node was returned to service, or a step used up its retries


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTerminationEvent:
    """Event of a termination. `id` is the same whenever the same change is read again; `at` is when it was written."""

    turn: EventType
    id: str
    at: datetime
    record: TerminationRecord
    causes: tuple[Cause, ...]
    why: str

    def detail(self) -> dict[str, Any]:
        """Return the event's `detail`, and the webhook's body: plain JSON without secrets."""
        record, subject = self.record, self.record.subject
        launched = list(record.replacement.launched) if record.replacement else []
        return {
            "id": self.id,
            "event": self.turn.value,
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
            "deadline": _instant(known_deadline(record, self.at)),
            "blockers": [_blocker(line, record, self.at) for line in record.blocked_by[:MOST_BLOCKERS]],
            "replacements": launched,
            "podsEvicted": record.pods_evicted,
            "outcome": record.outcome.value if record.outcome else None,
            "why": self.why,
        }


def events_of_change(
    before: TerminationRecord | None, after: TerminationRecord, at: datetime
) -> tuple[NodeTerminationEvent, ...]:
    """Return the events of the change, in the order in which they happened; none for progress of no interest."""
    return tuple(_detected(before, after, at)) + tuple(_turns(before, after, at))


def _detected(
    before: TerminationRecord | None, after: TerminationRecord, at: datetime
) -> Iterator[NodeTerminationEvent]:
    for cause in after.causes:
        if before is None or not before.knows(cause.id):
            yield _event(EventType.DETECTED, after, at, cause.id, why=cause.reason, causes=(cause,))


def _turns(before: TerminationRecord | None, after: TerminationRecord, at: datetime) -> Iterator[NodeTerminationEvent]:
    old_times = before.times if before and before.attempt == after.attempt else {}
    if "draining" in after.times and "draining" not in old_times:
        yield _event(EventType.STARTED, after, at, "", why=", ".join(cause.kind.value for cause in after.causes))
    if _blocked_pods(after) - _blocked_pods(before):
        pods = ",".join(sorted(_blocked_pods(after)))
        yield _event(EventType.BLOCKED, after, at, pods, why="; ".join(after.blocked_by)[:LONGEST_WHY])
    if "retry" in after.times and after.times["retry"] != old_times.get("retry"):
        again = format_instant(after.times["retry"])
        yield _event(
            EventType.FAILED, after, at, again, why=f"{after.failure or 'it did not end'}; tried again at {again}"
        )
    if after.status is Status.CLOSED and (before is None or before.status is Status.OPEN):
        yield _closed(after, at)


def _closed(record: TerminationRecord, at: datetime) -> NodeTerminationEvent:
    if record.outcome is Outcome.RETURNED_TO_SERVICE and record.failure:
        return _event(EventType.FAILED, record, at, "closed", why=record.failure)
    cancelled = "no cause requests its termination any more: it is in service again"
    gone = "the instance is gone and its hooks are answered"
    return _event(
        EventType.FINISHED, record, at, "", why=cancelled if record.outcome is Outcome.RETURNED_TO_SERVICE else gone
    )


def _blocked_pods(record: TerminationRecord | None) -> frozenset[str]:
    """Return the pods that block the drain. A budget's sentence counts pods and changes all the time: only more pods
    make an event. Load balancers and volumes that a node waits for do not block: they end by themselves.
    """
    lines = record.blocked_by if record else ()
    return frozenset(pod for line in lines if (pod := BlockedLine.read(line).pod) is not None)


def _event(
    turn: EventType,
    record: TerminationRecord,
    at: datetime,
    what: str,
    *,
    why: str,
    causes: tuple[Cause, ...] | None = None,
) -> NodeTerminationEvent:
    word = turn.name.lower()
    digest = f"-{sha256(what.encode()).hexdigest()[:12]}" if what else ""
    name = f"{execution_name(record.instance, record.attempt)}-{word}{digest}"
    return NodeTerminationEvent(
        turn=turn, id=name, at=at, record=record, causes=record.causes if causes is None else causes, why=why
    )


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind.value,
        "at": format_instant(cause.at),
        "deadline": _instant(cause.deadline),
        "reason": cause.reason,
        "hook": cause.hook,
    }


def _blocker(line: str, record: TerminationRecord, at: datetime) -> dict[str, Any]:
    """Build one blocker. `until`: when it is no longer waited for, as the line itself says, else when the drain gives
    up; None if the wait has no end.
    """
    blocked = BlockedLine.read(line)
    ends = [moment for moment in (record.times.get("until"), detach_deadline(record, at)) if moment is not None]
    return {
        "pod": blocked.pod,
        "why": blocked.why,
        "until": _instant(blocked.until or min(ends, default=None)),
    }


def _instant(moment: datetime | None) -> str | None:
    return format_instant(moment) if moment else None
