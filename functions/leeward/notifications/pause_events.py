"""Events of a change of the pause switch: a pause has begun or continues without an end, or it has ended.

Decides which events a change causes and what they contain, as `notifications.events` does for terminations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from leeward.model.pause import Pause, PauseRecord
from leeward.model.times import format_instant

TIME_IS_OVER = "its time is over"


class PauseEventType(StrEnum):
    """Values of an event's `detail-type` (docs/reference/events.md lists them)."""

    PAUSED = "Pause Announced"  # a cluster or a group is paused; again each day while that has no end
    RESUMED = "Pause Ended"  # by a person, or by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseEvent:
    """Event of a pause. `id`: the same when the same change is read again; `by`, `reason`: of the writer; `by` empty:
    time alone has changed it.
    """

    type: PauseEventType
    id: str
    at: datetime
    cluster: str
    pause: Pause
    by: str
    reason: str

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
            "until": format_instant(pause.until) if pause.until is not None else None,
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
            yield _event(PauseEventType.PAUSED, after, pause, at, by=pause.by, reason=pause.why)


def _ended(before: PauseRecord | None, after: PauseRecord, at: datetime) -> Iterator[PauseEvent]:
    for pause in before.pauses if before else ():
        if after.of_group(pause.group) is None:
            yield _event(PauseEventType.RESUMED, after, pause, at, by=after.by, reason=after.why or TIME_IS_OVER)


def _event(
    event_type: PauseEventType, record: PauseRecord, pause: Pause, at: datetime, *, by: str, reason: str
) -> PauseEvent:
    """Build an event. A record's version and the group name one change of one pause."""
    digest = sha256(f"{record.cluster}#{record.version}#{pause.group}".encode()).hexdigest()[:12]
    return PauseEvent(
        type=event_type,
        id=f"pause-{event_type.name.lower()}-{digest}",
        at=at,
        cluster=record.cluster,
        pause=pause,
        by=by,
        reason=reason,
    )
