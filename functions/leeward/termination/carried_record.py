"""Record of a termination on its way from step to step, so that a step makes as few calls of the table as it can.

A step that follows at once uses the record that the step before has read or written some seconds ago, where a cause
that joins in between is noticed all the same: the version that the run carries is that record's, so the next pause and
the close of the record fail, and the run reads again. After a pause the record is always read. Notes that nothing but
the next step needs are written with that step's own call (docs/designs/aws-calls.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from leeward.errors import InvalidInputError, LeewardError, ObjectGoneError
from leeward.isolation import attempt
from leeward.model.termination import Status, TerminationRecord
from leeward.termination.run import Run, Unwritten

if TYPE_CHECKING:
    from leeward.ports import Ports

CARRIED_FOR = timedelta(seconds=5)  # as long as a step may act on a record that it has read itself
SHOWN_WITHIN = 30  # seconds: progress of a drain that pauses for longer is written before the pause


def current(
    run: Run, ports: Ports, unless: Callable[[TerminationRecord], bool] = lambda _: False
) -> tuple[Run, TerminationRecord]:
    """Return the record, from the step before or the table, and the run without the notes that the call has written.
    `unless`: whether the record has to be read. Raises InvalidInputError for an instance without a claim.
    """
    run, record = latest(run, ports, unless)
    if record is None:
        raise InvalidInputError(f"{run.instance}: found no termination record, expected one: claim it first")
    return run, record


def latest(
    run: Run, ports: Ports, unless: Callable[[TerminationRecord], bool] = lambda _: False
) -> tuple[Run, TerminationRecord | None]:
    """Return the same, None for an instance without a claim."""
    carried = _carried(run, ports)
    if carried is not None and not unless(carried):
        return replace(run, read_at=run.given[1] if run.given else None), carried
    return reread(run, ports)


def reread(run: Run, ports: Ports) -> tuple[Run, TerminationRecord | None]:
    """Read the record; notes that wait are written in the same call."""
    now, notes = ports.clock.now(), run.unwritten
    if not notes:
        return replace(run, read_at=now), ports.claims.read(run.instance)
    try:
        record = ports.claims.note_attempt(
            run.instance, run.attempt, times=notes.times, evicted=notes.evicted, seen=notes.seen
        )
    except ObjectGoneError:
        return replace(run, read_at=now, unwritten=Unwritten()), None
    return replace(run, read_at=now, unwritten=Unwritten()), record


def noted(run: Run, ports: Ports, times: Mapping[str, datetime], **more: Any) -> tuple[Run, TerminationRecord]:
    """Write a note, with those that wait, and return the record as it then stands."""
    notes = run.unwritten
    record = ports.claims.note(run.instance, times={**notes.times, **times}, seen=notes.seen, **more)
    return replace(run, read_at=ports.clock.now(), unwritten=Unwritten(evicted=notes.evicted)), record


def noted_attempt(run: Run, ports: Ports, times: Mapping[str, datetime], **more: Any) -> tuple[Run, TerminationRecord]:
    """Write a note about the run's attempt, with those that wait, and return the record as it then stands."""
    notes = run.unwritten
    both = {"evicted": notes.evicted, "seen": notes.seen, **more}
    record = ports.claims.note_attempt(run.instance, run.attempt, times={**notes.times, **times}, **both)
    return replace(run, read_at=ports.clock.now(), unwritten=Unwritten()), record


def later(run: Run, record: TerminationRecord, **times: datetime) -> tuple[Run, TerminationRecord]:
    """Return the run and the record with times that the next call writes. Times that are set stay."""
    new = {name: at for name, at in times.items() if name not in record.times}
    unwritten = replace(run.unwritten, times={**run.unwritten.times, **new})
    return replace(run, unwritten=unwritten), replace(record, times={**record.times, **new})


def carrying(run: Run, record: TerminationRecord, ports: Ports) -> Run:
    """Return the run with the record for the step that follows, as old as this step's own is."""
    return replace(run, record=ports.claims.carried(record))


def _carried(run: Run, ports: Ports) -> TerminationRecord | None:
    """Return the record that the step before has passed on, None for none that counts: it is too old, of another
    attempt, or cannot be parsed.
    """
    if run.given is None or ports.clock.now() - run.given[1] > CARRIED_FOR:
        return None
    document = run.given[0]
    record = attempt(lambda: ports.claims.restored(document))
    if isinstance(record, LeewardError) or record.instance != run.instance:
        return None
    return record if record.attempt == run.attempt and record.status is Status.OPEN else None
