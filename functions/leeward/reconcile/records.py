"""Reading many termination records of which one may be malformed, or of a newer version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from leeward.errors import NewerRecordError
from leeward.model.termination import Status, TerminationRecord
from leeward.ports.clock import Clock
from leeward.ports.records import Claims
from leeward.reconcile.result import ReconcileResult
from leeward.retry import retry
from leeward.termination.requests import read_apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records by instance. `unreadable`: instances whose record cannot be parsed: nothing is done to them. `newer`:
    those of them whose record a newer version can parse.
    """

    read: Mapping[str, TerminationRecord]
    unreadable: frozenset[str] = field(default=frozenset())
    newer: frozenset[str] = field(default=frozenset())


def open_records(clock: Clock, claims: Claims, result: ReconcileResult) -> Mapping[str, TerminationRecord]:
    """Read the open records, by instance. Each minute begins with another one, so that a pass that dies early never
    skips the same record for good. Raises the table's errors: without records the pass ends, because terminations under
    way would be taken for unhandled ones.
    """
    names = retry(claims.open_instances, clock)
    first = clock.now().minute % len(names) if names else 0
    records = read_records(names, clock, claims, result).read
    ordered = [records[name] for name in (*names[first:], *names[:first]) if name in records]
    return {record.instance: record for record in ordered if record.status is Status.OPEN}


def read_records(instances: Sequence[str], clock: Clock, claims: Claims, result: ReconcileResult) -> Records:
    """Read the existing records; `result` names those that cannot be parsed. Raises the table's errors: a termination
    under way must not be taken for one that no execution handles.
    """
    records = retry(lambda: read_apart(instances, claims), clock)
    for name, error in records.unreadable.items():
        result.note(f"the record of {name}", error)
    newer = frozenset(name for name, error in records.unreadable.items() if isinstance(error, NewerRecordError))
    return Records(read=records.read, unreadable=frozenset(records.unreadable), newer=newer)


def is_open(record: TerminationRecord | None) -> bool:
    """Return whether there is a record and its termination is under way."""
    return record is not None and record.status is Status.OPEN
