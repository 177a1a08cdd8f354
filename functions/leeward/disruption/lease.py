"""Lease of a round, and the takeover of a round whose execution is dead.

Any number of starts ends with one execution that works."""

from datetime import datetime, timedelta

from leeward.disruption.record import RoundRecord
from leeward.disruption.run import RoundRun
from leeward.ports import Ports
from leeward.workflow.executions import execution_name, start_first_free
from leeward.workflow.lease import LeaseLostError, write_version

STARTS = 20  # executions of one round that are tried at one time


def held(record: RoundRecord, ports: Ports) -> bool:
    """Return whether an execution works on the round, or has been started and will take it."""
    name = record.execution or execution_name(record.cluster, record.number, 1)
    return ports.round_executions.running(name)


def read(run: RoundRun, ports: Ports) -> RoundRecord:
    """Return the record if this execution still holds it. Raises LeaseLostError."""
    record = ports.rounds.read(run.cluster)
    if record is None or record.number != run.number or record.execution != run.execution or not record.open:
        raise LeaseLostError(f"round {run.number} of {run.cluster}: {record.execution if record else '?'} has it now")
    return record


def written(record: RoundRecord, ports: Ports) -> RoundRecord:
    """Write the record and return it. Raises RecordChangedError, and the step is run again."""
    return write_version(record, ports.rounds.write, f"round of {record.cluster}")


def start(record: RoundRecord, ports: Ports) -> str:
    """Start an execution for the round. Idempotent. Raises RecordChangedError if `STARTS` of them have ended."""
    attempts = range(max(record.attempt, 1), record.attempt + STARTS)
    names = (execution_name(record.cluster, record.number, attempt) for attempt in attempts)
    document = {"v": 1, "cluster": record.cluster, "round": record.number}
    return start_first_free(ports.round_executions, names, document)


def revive(record: RoundRecord | None, ports: Ports) -> str | None:
    """Start an execution for an open round that no execution holds, and return its name; None where there is nothing to
    do yet.
    """
    if record is None or not record.open or held(record, ports):
        return None
    if record.retry is not None and ports.clock.now() < record.retry:
        return None
    return start(record, ports)


def rest_after(attempt: int, now: datetime) -> datetime:
    """Return when a round whose step has failed is taken up again: after 1, 2, 4 ... at most 15 minutes."""
    return now + timedelta(minutes=min(2 ** max(attempt - 1, 0), 15))
