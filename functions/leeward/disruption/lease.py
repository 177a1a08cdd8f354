"""Lease of a run, and the takeover of a run whose execution is dead.

Any number of starts ends with one execution that works."""

from datetime import datetime, timedelta

from leeward.disruption.record import DisruptionRecord
from leeward.disruption.run import DisruptionRun
from leeward.ports.clock import Clock
from leeward.ports.executions import NamedExecutions
from leeward.ports.records import Disruptions
from leeward.workflow.executions import execution_name, start_first_free
from leeward.workflow.lease import LeaseLostError, write_version

STARTS = 20  # executions of one run that are tried at one time


def is_leased(record: DisruptionRecord, disruption_executions: NamedExecutions) -> bool:
    """Return whether an execution works on the run, or has been started and will take its lease."""
    name = record.execution or execution_name(record.cluster, record.number, 1)
    return disruption_executions.running(name)


def read(run: DisruptionRun, disruptions: Disruptions) -> DisruptionRecord:
    """Return the record if this execution still holds it. Raises LeaseLostError."""
    record = disruptions.read(run.cluster)
    if record is None or record.number != run.number or record.execution != run.execution or not record.open:
        raise LeaseLostError(f"run {run.number} of {run.cluster}: {record.execution if record else '?'} has it now")
    return record


def written(record: DisruptionRecord, disruptions: Disruptions) -> DisruptionRecord:
    """Write the record and return it. Raises RecordChangedError, and the step is run again."""
    return write_version(record, disruptions.write, f"run of {record.cluster}")


def start(record: DisruptionRecord, disruption_executions: NamedExecutions) -> str:
    """Start an execution for the run. Idempotent. Raises RecordChangedError if `STARTS` of them have ended."""
    attempts = range(max(record.attempt, 1), record.attempt + STARTS)
    names = (execution_name(record.cluster, record.number, attempt) for attempt in attempts)
    document = {"v": 1, "cluster": record.cluster, "disruption": record.number}
    return start_first_free(disruption_executions, names, document)


def restart(record: DisruptionRecord | None, disruption_executions: NamedExecutions, clock: Clock) -> str | None:
    """Start an execution for an open run that no execution holds, and return its name; None where there is nothing to
    do yet.
    """
    if record is None or not record.open or is_leased(record, disruption_executions):
        return None
    if record.retry is not None and clock.now() < record.retry:
        return None
    return start(record, disruption_executions)


def retry_at(attempt: int, now: datetime) -> datetime:
    """Return when a run whose step has failed is started again: after 1, 2, 4 ... at most 15 minutes."""
    return now + timedelta(minutes=min(2 ** max(attempt - 1, 0), 15))
