"""Detach deadline of a termination record: when EC2 takes the instance, from the causes of its present period.

The time-out of a lifecycle hook is none: heartbeats extend ours, and `leeward.termination.deadlines` says when another
team's counts."""

from datetime import datetime, timedelta

from leeward.model.termination import Cause, CauseKind, TerminationRecord

ABRUPT = (CauseKind.SPOT_INTERRUPTION, CauseKind.CAPACITY_RESERVATION)  # two minutes after the warning
TAKEN = (*ABRUPT, CauseKind.CAPACITY_BLOCK)  # EC2 ends the instance at the deadline, whatever runs there
OVERDUE = timedelta(minutes=5)  # EC2 takes an instance within seconds of the moment that it has announced


def taken_at(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return when EC2 ends the instance by itself, None while no warning announces it. A warning that has not come true
    has no effect any more: it was replayed or forged, or EC2 has kept the instance.
    """
    moments = (cause.deadline for cause in record.causes if cause.kind in TAKEN and not _is_overdue(cause, now))
    return min((moment for moment in moments if moment is not None), default=None)


def is_abrupt(record: TerminationRecord, now: datetime) -> bool:
    """Return whether EC2 takes the instance within minutes, by a warning that may still come true."""
    return any(cause.kind in ABRUPT and not _is_overdue(cause, now) for cause in record.causes)


def _is_overdue(cause: Cause, now: datetime) -> bool:
    return cause.kind in ABRUPT and cause.deadline is not None and now - cause.deadline > OVERDUE


def maintenance(record: TerminationRecord, now: datetime) -> tuple[datetime, ...]:
    """Return the dates of maintenance that is still ahead, earliest first: of each Health event the one announced last.
    AWS moves maintenance, usually to a later date, and messages come in any order. Of two announced at once the earlier
    counts. A date that has passed has no effect any more.
    """
    latest: dict[str, tuple[datetime, datetime]] = {}  # event -> (when it was announced, date)
    for cause in record.causes:
        if cause.kind is CauseKind.SCHEDULED_CHANGE and cause.deadline is not None:
            event = cause.id.partition("#")[0]  # the event's ARN; communication, date and instance follow
            announced, date = latest.get(event, (cause.at, cause.deadline))
            if cause.at > announced or (cause.at == announced and cause.deadline < date):
                announced, date = cause.at, cause.deadline
            latest[event] = announced, date
    return tuple(sorted(date for _, date in latest.values() if date > now))


def detach_deadline(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return when EC2 takes the instance: the earliest of its warnings and of the maintenance that is ahead."""
    dates = (taken_at(record, now), *maintenance(record, now))
    return min((moment for moment in dates if moment is not None), default=None)


def known_deadline(record: TerminationRecord, now: datetime) -> datetime | None:
    """Return the deadline shown to people: the detach deadline, or the earlier one that a manual drain has set."""
    manual = record.options.deadline if record.options else None
    return min((moment for moment in (detach_deadline(record, now), manual) if moment is not None), default=None)
