"""Events of a change of a disruption run's record: it has started, finished, or was dropped.

Decides which events a change causes and what they contain, as `notifications.events` does for terminations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from leeward.disruption.record import DisruptionOutcome, DisruptionRecord
from leeward.model.times import format_instant
from leeward.notifications.next_commands import runs_command

MOST_COMMANDS = 20  # that an event names
LONGEST_COMMAND = 300  # characters


class RunEventType(StrEnum):
    """Values of an event's `detail-type` (docs/reference/events.md lists them)."""

    STARTED = "Disruption Run Started"  # its nodes are claimed
    FINISHED = "Disruption Run Finished"  # its nodes are gone, or were returned to service
    DROPPED = "Disruption Run Dropped"  # nothing was disrupted


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Event of a disruption run. `id`: the same when the same change is read again."""

    type: RunEventType
    id: str
    at: datetime
    record: DisruptionRecord
    reason: str

    @property
    def cluster(self) -> str:
        """Cluster of the run."""
        return self.record.cluster

    @property
    def resources(self) -> tuple[str, ...]:
        """Its cluster and the groups of its nodes."""
        return (self.record.cluster, *self.record.groups)

    @property
    def next(self) -> str:
        """The command that shows more."""
        return runs_command(self.record.cluster)

    def detail(self) -> dict[str, Any]:
        """Return the event's `detail`, and the webhook's body: plain JSON without secrets."""
        record = self.record
        commands = [f"{one.decision.value} {', '.join(one.nodes)}" for one in record.commands[:MOST_COMMANDS]]
        return {
            "id": self.id,
            "event": self.type.value,
            "at": format_instant(self.at),
            "cluster": record.cluster,
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
            "why": self.reason,
            "next": self.next,
        }


def dollars_of(record: DisruptionRecord) -> float | None:
    """Return what an ended run saves in dollars an hour, by the prices of its plan; None where that is not known."""
    return round(sum(dollars for _, dollars in record.saved), 4) if record.saved else None


def events_of_runs(before: DisruptionRecord | None, after: DisruptionRecord, at: datetime) -> tuple[RunEvent, ...]:
    """Return the events of the change. `before` None: the cluster had no run; `at`: when the change was written."""
    return tuple(_events(before, after, at))


def _events(before: DisruptionRecord | None, after: DisruptionRecord, at: datetime) -> Iterator[RunEvent]:
    same = before is not None and before.number == after.number
    if not same:
        yield _event(RunEventType.STARTED, after, at, reason=_start(after))
    if not after.open and (not same or (before is not None and before.open)):
        done = after.outcome is DisruptionOutcome.DONE
        yield _event(RunEventType.FINISHED if done else RunEventType.DROPPED, after, at, reason=after.why)


def _start(record: DisruptionRecord) -> str:
    by = f"started by {record.requested_by}" if record.requested_by else "started by its policy"
    reasons = "; ".join(dict.fromkeys(command.reason for command in record.commands))
    return f"{record.summary}: {by}: {reasons}"[:LONGEST_COMMAND]


def _event(event_type: RunEventType, record: DisruptionRecord, at: datetime, *, reason: str) -> RunEvent:
    """Build an event. Each type happens once in a run, which the time of its beginning distinguishes from runs of an
    earlier table.
    """
    about = f"{record.cluster}#{record.number}#{format_instant(record.began)}"
    digest = sha256(about.encode()).hexdigest()[:12]
    return RunEvent(type=event_type, id=f"run-{event_type.name.lower()}-{digest}", at=at, record=record, reason=reason)
