"""Whether an instance is one of so many that EC2 takes at the same time, and how its drain is paced then. Pure.

In a storm AWS throttles what each termination asks of it, and the drains share the concurrency of one function: a call
makes one turn of evictions and returns, and asks EC2 and Auto Scaling nothing while pods are left
(docs/designs/storms.md)."""

from datetime import datetime, timedelta
from zlib import crc32

from leeward.model.deadlines import ABRUPT
from leeward.model.termination import TerminationRecord
from leeward.termination import deadlines

SMALLEST = 20  # instances in one batch of messages: fewer get through the limits of AWS, and launch their replacements
SHORTEST_PAUSE = 8  # seconds; a thousand nodes are looked at by some fifty calls a second
SPREAD = 8  # seconds, by instance: they were claimed in the same second


def in_storm(record: TerminationRecord) -> bool:
    """Whether EC2 takes so many instances at once, as fn interruption has counted when it claimed this one."""
    return record.subject.together >= SMALLEST and record.has(*ABRUPT)


def evicts_alone(record: TerminationRecord, now: datetime) -> bool:
    """Whether a step evicts without a look at AWS: in a storm, until the instance is released."""
    release = deadlines.release_at(record)
    return in_storm(record) and release is not None and now < release


def pause_seconds(record: TerminationRecord, now: datetime) -> int:
    """Seconds until the next turn: the same for one instance every time, and never past the moment of its release."""
    pause = SHORTEST_PAUSE + crc32(record.instance.encode()) % SPREAD
    release = deadlines.release_at(record) or now + timedelta(seconds=pause)
    return max(1, min(pause, int((release - now).total_seconds())))
