"""Facts of a weekly report, read with the caller's credentials: the termination records of the cluster, and the
histories of the terminations that took long.

What could not be read is a sentence in `missing`; without the records there is no report."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from leeward.cli.report.node_markers import stays
from leeward.cli.report.weekly import Stay, WeekFacts, owner_of
from leeward.errors import AccessDeniedError, LeewardError
from leeward.model.execution import Machine
from leeward.model.termination import TerminationRecord, execution_name
from leeward.ports.executions import PastExecutions
from leeward.ports.records import PastTerminations

WEEK = timedelta(days=7)
KEPT = timedelta(days=7)  # a closed record is deleted after that
MOST_HISTORIES = 200  # each is a call
QUICK = timedelta(seconds=15)  # a drain that was over sooner was not blocked


def read_weeks(
    cluster: str, weeks: int, now: datetime, terminations: PastTerminations, past: PastExecutions
) -> WeekFacts:
    """Read the facts of the weeks before `now`. Raises AccessDeniedError naming the permission for the records."""
    begin = now - weeks * WEEK
    try:
        records = terminations.of_cluster(cluster)
    except AccessDeniedError as error:
        raise AccessDeniedError(f"{error}; a weekly report needs dynamodb:Scan on the table") from error
    records = [record for record in records if _last_time(record) >= begin]
    missing = [_too_old(now)] if begin < now - KEPT else []
    found: list[Stay] = []
    slow = sorted((record for record in records if _drain(record, now) > QUICK), key=lambda one: -_drain(one, now))
    try:
        for record in slow[:MOST_HISTORIES]:
            found += _stays(record, past, now)
    except LeewardError as error:
        missing.append(f"Blocked time is incomplete: histories of executions could not be read ({error}).")
    if len(slow) > MOST_HISTORIES:
        missing.append(f"Blocked time is of the {MOST_HISTORIES} longest of {len(slow)} drains.")
    return WeekFacts(
        cluster=cluster, begin=begin, end=now, records=tuple(records), stays=tuple(found), missing=tuple(missing)
    )


def _too_old(now: datetime) -> str:
    return (
        f"Terminations that ended before {now - KEPT:%Y-%m-%d %H:%M} UTC are not included: their records are deleted."
    )


def _last_time(record: TerminationRecord) -> datetime:
    return max([cause.at for cause in record.all_causes] + list(record.times.values()))


def _drain(record: TerminationRecord, now: datetime) -> timedelta:
    """Return how long the drain took, or has taken so far."""
    begun = record.times.get("begun") or record.times.get("draining")
    return timedelta() if begun is None else record.times.get("drained", now) - begun


def _stays(record: TerminationRecord, past: PastExecutions, now: datetime) -> Iterator[Stay]:
    """Yield the times in which pods did not leave, from the history of each attempt of the present record."""
    for attempt in _attempts(record):
        steps = past.steps(Machine.TERMINATION, execution_name(record.instance, attempt)) or ()
        for begin, end, line in stays(steps, record.times.get("closed", now)):
            if end > begin:
                yield Stay(owner=owner_of(line), instance=record.instance, pod=line.pod or "", begin=begin, end=end)


def _attempts(record: TerminationRecord) -> Sequence[int]:
    most = 3
    return range(max(1, record.attempt - most + 1), record.attempt + 1)
