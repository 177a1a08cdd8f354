"""Facts about its instance that a step of node-termination may use, and when it has to ask AWS again. Pure, and the
only place that decides it (docs/designs/aws-calls.md).

A fact is an observation in the record (`model.seen`), overtaken by later messages (causes that joined) and by requests
of this termination itself. Messages may be late, lost, doubled or out of order. None of them is final but EC2's report
that an instance has ended, which was confirmed when the message was handled."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto

from leeward.model.instance import ENDED
from leeward.model.seen import SeenGroup, SeenInstance
from leeward.model.termination import CauseKind, TerminationRecord

IN_SERVICE, TERMINATING, WAITING = "InService", "Terminating", "Terminating:Wait"
PROCEEDING = "Terminating:Proceed"
SETTLED = frozenset({IN_SERVICE, "Standby", WAITING})  # states that last until an actor changes them
RUNNING = "running"
KEPT = timedelta(minutes=3)  # without a message: after that one may have been lost
UNSETTLED = timedelta(seconds=10)  # of a state that does not last: a message about the next one takes a second
RECENT = timedelta(seconds=15)  # for a launch: an instance that has ended needs none
DISORDER = timedelta(seconds=30)  # by which clocks, and events and observations, may be out of order


class Need(Enum):
    """Purpose of the facts in the next step. `WORK`: wait, evict, heartbeat, try calls that AWS itself refuses if they
    are wrong. `GROUP`: depend on the group's sizes, members or lifecycle state. `ALL`: actions that must not follow
    from a stale fact: return a node to service, release it, delete pods, settle the ledger.
    """

    WORK = auto()
    GROUP = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts that a step may use; None: ask AWS."""

    instance: SeenInstance | None = None
    group: SeenGroup | None = None


def facts(record: TerminationRecord, now: datetime, need: Need) -> Facts:
    """Return the facts that serve this need at this moment."""
    if need is Need.ALL:
        return Facts()
    instance = instance_fact(record, now)
    if need is Need.GROUP and instance is not None and instance.state not in ENDED and now - instance.at >= RECENT:
        instance = None
    return Facts(instance=instance, group=None if need is Need.GROUP else group_fact(record, now))


def instance_fact(record: TerminationRecord, now: datetime) -> SeenInstance | None:
    """Return the state that EC2 reports. A report that it has ended the instance is final. A report of a stop may be
    overtaken by a start, so that it only means that it is time to ask.
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
    if any(cause.at >= seen.at - DISORDER for cause in announced):
        return None
    lasts = KEPT if seen.state == RUNNING else UNSETTLED
    return seen if now - seen.at < lasts else None


def group_fact(record: TerminationRecord, now: datetime) -> SeenGroup | None:
    """Return the group's lifecycle state of the instance, with the properties of the group that hardly change."""
    seen = record.seen.group if record.seen else None
    if seen is None or now - seen.at >= KEPT:
        return None
    lifecycle, since = seen.lifecycle, seen.at
    requested = record.times.get("terminating")
    if requested is not None and requested >= seen.at - DISORDER and _rank(lifecycle) < _rank(TERMINATING):
        lifecycle, since = TERMINATING, requested
    held = max((cause.at for cause in record.causes if _held(cause.kind, cause.hook)), default=None)
    is_held = held is not None and held >= seen.at - DISORDER and _rank(lifecycle) < _rank(WAITING)
    if held is not None and is_held:
        lifecycle, since = WAITING, held
    answered = record.times.get("answered")
    early = DISORDER if is_held else timedelta()
    if answered is not None and _rank(lifecycle) <= _rank(WAITING) and answered >= since - early:
        lifecycle, since = PROCEEDING, answered
    if lifecycle not in SETTLED and now - since >= UNSETTLED:
        return None
    return replace(seen, lifecycle=lifecycle)


def seconds_left(record: TerminationRecord, now: datetime) -> float:
    """Return the seconds until the facts that a step has used have to be read again, at most `KEPT`."""
    span = 1.0
    while span < KEPT.total_seconds():
        later = facts(record, now + timedelta(seconds=span), Need.WORK)
        if later.instance is None or later.group is None:
            return span
        span += 1.0
    return span


def _seen_instance(record: TerminationRecord) -> SeenInstance | None:
    """Return the instance as a step has observed it, else as it was claimed."""
    if record.seen and record.seen.instance:
        return record.seen.instance
    subject, claimed = record.subject, record.times.get("claimed")
    if not subject.state or claimed is None:
        return None
    return SeenInstance(at=claimed, state=subject.state, networks=subject.networks)


def _held(kind: CauseKind, hook: str | None) -> bool:
    return kind is CauseKind.ASG_TERMINATE and hook is not None


def _rank(lifecycle: str | None) -> int:
    """Return how far the instance's end has come. A message does not overtake a state that is neither in service nor on
    the usual path.
    """
    order = {IN_SERVICE: 0, "Standby": 0, TERMINATING: 1, WAITING: 2}
    return order.get(lifecycle or "", 3)
