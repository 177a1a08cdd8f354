"""Recorded facts about an instance that a step of node-termination may use instead of asking AWS.

Decides alone when a fact is too old (docs/designs/aws-calls.md), and has no side effects. A fact is an observation
in the record (`model.seen`), updated by later messages (causes that joined) and by the termination's own requests.
Messages may be late, lost, duplicated or out of order. Only EC2's report that an instance has ended is final: it was
confirmed when the message was handled."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from leeward.model.instance import ENDED
from leeward.model.lifecycle import (
    IN_SERVICE,
    REPLACE_WAIT,
    STANDBY,
    TERMINATE_PROCEED,
    TERMINATE_WAIT,
    TERMINATING,
)
from leeward.model.seen import SeenGroup, SeenInstance
from leeward.model.termination import CauseKind, TerminationRecord

SETTLED = frozenset({IN_SERVICE, STANDBY, TERMINATE_WAIT, REPLACE_WAIT})  # states that last until an actor changes them
RUNNING = "running"
MAX_AGE = timedelta(minutes=3)  # without a message for longer, one may have been lost
TRANSIENT_MAX_AGE = timedelta(seconds=10)  # for a state that does not last; a message about the next takes a second
LAUNCH_MAX_AGE = timedelta(seconds=15)  # before a launch: an instance that has ended needs no replacement
MAX_DISORDER = timedelta(seconds=30)  # clocks, events and observations may be out of order by as much


class Need(Enum):
    """Purpose for which the next step uses the facts.

    `WORK`: waits, evictions, heartbeats, and calls that AWS itself refuses if they are wrong. `GROUP`: decisions that
    depend on the group's sizes, members or lifecycle state. `ALL`: actions that a stale fact must not cause: returning
    a node to service, releasing it, deleting pods, settling the capacity ledger.
    """

    WORK = auto()
    GROUP = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts that a step may use; None: the step has to ask AWS."""

    instance: SeenInstance | None = None
    group: SeenGroup | None = None


def facts(record: TerminationRecord, now: datetime, need: Need) -> Facts:
    """Return the facts that are fresh enough for the need at `now`."""
    if need is Need.ALL:
        return Facts()
    instance = instance_fact(record, now)
    if need is Need.WORK:
        return Facts(instance=instance, group=group_fact(record, now))
    if instance is not None and instance.state not in ENDED and now - instance.at >= LAUNCH_MAX_AGE:
        instance = None
    return Facts(instance=instance)


def instance_fact(record: TerminationRecord, now: datetime) -> SeenInstance | None:
    """Return the state of the instance as EC2 last reported it; None: ask EC2.

    A report that the instance has ended is final. A report of a stop may be outdated by a start, so it makes the step
    ask.
    """
    seen = _seen_instance(record)
    announced = [cause for cause in record.causes if cause.state]
    ended = [cause for cause in announced if cause.state in ENDED]
    if ended:
        last = max(ended, key=lambda cause: (cause.state == "terminated", cause.at))
        known = seen or SeenInstance(at=last.at, state=last.state)
        return known if known.state in ENDED else replace(known, at=last.at, state=last.state)
    if seen is None or seen.state in ENDED:
        return seen
    if any(cause.at >= seen.at - MAX_DISORDER for cause in announced):
        return None
    lasts = MAX_AGE if seen.state == RUNNING else TRANSIENT_MAX_AGE
    return seen if now - seen.at < lasts else None


def group_fact(record: TerminationRecord, now: datetime) -> SeenGroup | None:
    """Return the lifecycle state of the instance in its group, with the properties of the group that rarely change;
    None: ask Auto Scaling.
    """
    seen = record.seen.group if record.seen else None
    if seen is None or now - seen.at >= MAX_AGE:
        return None
    lifecycle, since = seen.lifecycle, seen.at
    requested = record.times.get("terminating")
    if requested is not None and requested >= seen.at - MAX_DISORDER and _rank(lifecycle) < _rank(TERMINATING):
        lifecycle, since = TERMINATING, requested
    replaced = [cause.at for cause in record.causes if cause.kind is CauseKind.REPLACE_ROOT_VOLUME]
    if any(at >= seen.at - MAX_DISORDER for at in replaced) or (
        lifecycle == REPLACE_WAIT and "answered" in record.times
    ):
        return None  # the group moves on through states that no message announces
    by_hook = (cause for cause in record.causes if cause.kind is CauseKind.ASG_TERMINATE and cause.hook is not None)
    held = max((cause.at for cause in by_hook), default=None)
    is_held = held is not None and held >= seen.at - MAX_DISORDER and _rank(lifecycle) < _rank(TERMINATE_WAIT)
    if held is not None and is_held:
        lifecycle, since = TERMINATE_WAIT, held
    answered = record.times.get("answered")
    early = MAX_DISORDER if is_held else timedelta()
    if answered is not None and _rank(lifecycle) <= _rank(TERMINATE_WAIT) and answered >= since - early:
        lifecycle, since = TERMINATE_PROCEED, answered
    if lifecycle not in SETTLED and now - since >= TRANSIENT_MAX_AGE:
        return None
    return replace(seen, lifecycle=lifecycle)


def seconds_left(record: TerminationRecord, now: datetime) -> float:
    """Return the seconds until a fact of `Need.WORK` has to be read again, in whole seconds from 1 to `MAX_AGE`."""
    seconds = 1.0
    while seconds < MAX_AGE.total_seconds():
        later = facts(record, now + timedelta(seconds=seconds), Need.WORK)
        if later.instance is None or later.group is None:
            return seconds
        seconds += 1.0
    return seconds


def _seen_instance(record: TerminationRecord) -> SeenInstance | None:
    """Return the instance as a step has last observed it, else as it was when the termination was claimed."""
    if record.seen and record.seen.instance:
        return record.seen.instance
    subject, claimed = record.subject, record.times.get("claimed")
    if not subject.state or claimed is None:
        return None
    return SeenInstance(at=claimed, state=subject.state, networks=subject.networks)


def _rank(lifecycle: str | None) -> int:
    """Return the position of a lifecycle state on the way from InService to the end. Any other state ranks last, so
    that no message overrides it.
    """
    order = {IN_SERVICE: 0, STANDBY: 0, TERMINATING: 1, TERMINATE_WAIT: 2}
    return order.get(lifecycle or "", 3)
