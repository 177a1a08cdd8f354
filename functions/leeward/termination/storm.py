"""Detection of a storm (EC2 takes many instances at the same time), and the pace of drains in it. Pure.

In a storm AWS throttles the calls of each termination, and the drains share the concurrency of one function. A call
makes one turn of evictions and returns, and calls neither EC2 nor Auto Scaling while pods are left
(docs/designs/storms.md)."""

from collections.abc import Sequence
from datetime import datetime
from math import ceil
from zlib import crc32

from leeward.model.termination import ABRUPT, TerminationRecord
from leeward.termination import deadlines

SMALLEST = 20  # instances in about a minute: fewer stay within the limits of AWS, and launch their replacements
SHORTEST_PAUSE = 8  # seconds
SPREAD = 8  # seconds, by instance: they were claimed in the same second
SERVED = 500  # nodes: of more each waits longer, in proportion, or second turns would take the places of first ones


def in_storm(record: TerminationRecord) -> bool:
    """Return whether EC2 takes so many instances at once, as fn interruption counted when it claimed this one."""
    return taken_together(record) >= SMALLEST


def taken_together(record: TerminationRecord) -> int:
    """Return how many instances EC2 takes within about a minute, by the largest of the counts that its causes carry."""
    return max((cause.together for cause in record.causes if cause.kind in ABRUPT), default=0)


def evicts_alone(record: TerminationRecord, now: datetime) -> bool:
    """Return whether a step evicts without a call to AWS: in a storm, until the instance is released."""
    release = deadlines.release_at(record, now)
    return in_storm(record) and release is not None and now < release


def asks_when_empty(record: TerminationRecord) -> bool:
    """Return whether AWS is asked to end the emptied instance before EC2 takes it: of as few as AWS serves beside each
    other, by instance. While AWS throttles, a call holds one of the places that the pods of other nodes wait for.
    """
    return crc32(record.instance.encode()) % max(taken_together(record), 1) < SMALLEST


def seconds_to_release(record: TerminationRecord, now: datetime) -> int:
    """Return the whole seconds until the instance is released, at least one."""
    release = deadlines.release_at(record, now)
    return max(1, int((release - now).total_seconds())) if release is not None else 1


def pause_seconds(record: TerminationRecord, now: datetime, moments: Sequence[datetime] = ()) -> int:
    """Return the seconds until the next turn: always the same for one instance, never past its release nor past the
    next of the `moments` at which more pods have their turn.
    """
    times = max(1, taken_together(record) / SERVED)
    pause = int(SHORTEST_PAUSE * times) + crc32(record.instance.encode()) % int(SPREAD * times)
    ends = [] if deadlines.release_at(record, now) is None else [seconds_to_release(record, now)]
    turns = [ceil((moment - now).total_seconds()) for moment in moments if moment > now]
    return min([pause, *ends, *turns])
