"""Second look at a node before a step acts on it: an API server that has been away shows an old state first."""

from datetime import datetime, timedelta

from leeward.model.termination import TerminationRecord
from leeward.ports.records import Claims

MISSED = "missed"  # a key in the record's times: the last look at which the node was overdue
LOOKS_AGAIN = timedelta(seconds=60)  # a kubelet that lost its API server has reported long before
LOOKED = timedelta(minutes=3)  # a look before that says nothing: the API server may have been away since


def seen_once(record: TerminationRecord, claims: Claims, now: datetime) -> str:
    """Return that this is the first of two looks in a row, or too soon after it; empty at the second. The first is
    noted in the record.
    """
    missed = record.times.get(MISSED)
    if missed is None or now - missed > LOOKED:
        claims.note(record.instance, times={MISSED: now})
        return "seen once"
    return "seen a moment ago" if now - missed < LOOKS_AGAIN else ""
