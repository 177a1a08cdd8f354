"""Capacity ledger (docs/designs/capacity-ledger.md): the surge instances that a termination has to offset, and whether
its end has offset them.

Each launch by Leeward raises the desired size by one. One termination with decrement offsets it. It is written off if
another actor has shrunk the group on purpose since then, with the larger size in view. It passes on to another named
instance if the group replaced the instance that should have offset it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from leeward.model.capacity import Offset, SurgeInstance, SurgeOwner
from leeward.model.group import Group, GroupInstance, ScalingActivity
from leeward.model.instance import Instance
from leeward.model.lifecycle import PRESENT, STAYING, role_of
from leeward.model.termination import Cause, CauseKind, Status, TerminationRecord
from leeward.model.times import parse_instant

LATEST_WORD = timedelta(minutes=15)  # no activity of the group by then: nothing is terminated on a guess
MARGIN = timedelta(minutes=5)  # between our clock and the group's

_SENTENCES = re.compile(r"(?=At \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ )")  # of a cause: each begins with its time
_AT = slice(3, 23)  # the time in a sentence
_RESIZED = re.compile(r"changing the desired capacity from (\d+) to (\d+)")
_ASKED_FOR = "in response to a user request, shrinking the capacity"


class Ending(StrEnum):
    """Ways in which the group parted with an instance."""

    SHRUNK = "shrunk"  # the group became smaller on purpose: by our decrement, or by another actor's request
    REPLACED = "replaced"  # the group launches another in its place, or parted with it before the launch
    UNKNOWN = "unknown"  # no activity reports it yet


def to_offset(record: TerminationRecord) -> tuple[SurgeInstance, ...]:
    """Return the surge instances that this instance's end has to offset: the launch made for it, then those that others
    request. One of an earlier period counts until it is settled.
    """
    surges = (record.surge, *(cause.surge for cause in record.all_causes))
    return tuple(surge for surge in dict.fromkeys(surges) if surge is not None and surge not in record.offsets)


def passed_on(record: TerminationRecord) -> Mapping[SurgeInstance, str]:
    """Map each surge instance that was passed on to the other instance whose termination offsets it: by the entry that
    is requested there.
    """
    return {
        surge: offset.instance
        for surge, offset in record.offsets.items()
        if isinstance(offset, Offset)
        and offset.instance != record.instance
        and next_round(record, surge) not in record.offsets
    }


def next_round(record: TerminationRecord, surge: SurgeInstance) -> SurgeInstance:
    """Return the entry by which this record requests the offset of members that were asked before: another entry, for
    each member settles an entry once. Its name follows from the record, and a record passes each entry on once.
    """
    return replace(surge, request="/".join(filter(None, (surge.request, record.instance))))


def ahead(new: str) -> SurgeInstance:
    """Return the entry of an instance that an upgrade or a disruption run has launched and gives up: from now on the
    terminations see to its offset.
    """
    return SurgeInstance(owner=SurgeOwner.TERMINATION, instance=new)


def only_surplus(record: TerminationRecord) -> bool:
    """Return whether an offset alone requests the termination of this instance."""
    return bool(record.causes) and all(cause.kind is CauseKind.SURPLUS for cause in record.causes)


def is_under_way(record: TerminationRecord) -> bool:
    """Return whether the termination is open and has pods to drain, as far as its record says: not once they have left,
    nor while a node that was returned to service waits for the next attempt.
    """
    return record.status is Status.OPEN and not {"drained", "retry"} & record.times.keys()


def waits_for_turn(record: TerminationRecord) -> bool:
    """Return whether the drain of a surplus has not begun: nodes in front of it use the limits of drains."""
    return is_under_way(record) and only_surplus(record) and "draining" not in record.times


def is_requested(record: TerminationRecord, surge: SurgeInstance) -> bool:
    """Return whether the offset has been requested of this termination, in whatever period."""
    return any(cause.surge == surge for cause in record.all_causes)


def was_requested(record: TerminationRecord, surge: SurgeInstance) -> bool:
    """Return whether the instance was to offset it before and could not: its record names the next instance."""
    return surge in record.offsets or is_requested(record, surge)


def larger_since(record: TerminationRecord, surge: SurgeInstance) -> datetime | None:
    """Return when the group became one larger, as far as this record knows."""
    joined = next((cause.at for cause in record.all_causes if cause.surge == surge), None)
    return joined or record.times.get("replacement") or record.times.get("claimed")


def shrunk_since(activities: Iterable[ScalingActivity], since: datetime) -> bool:
    """Return whether another actor has set a smaller size since then: a person, a schedule or a scaling policy. Leeward
    never does.

    Source: "How do I find out why a scale-in happened" of the AWS knowledge centre: each of the three leaves the words
    "changing the desired capacity from X to Y" in the cause, in a sentence that begins with its own time. The activity
    comes when the group acts on it, minutes later where it has to wait for an instance.
    """
    seconds = since.replace(microsecond=0)  # the sentences have no fractions
    return any(
        _is_smaller(sentence) and _said_at(sentence, activity) >= seconds
        for activity in activities
        if activity.at >= since
        for sentence in _SENTENCES.split(activity.cause)
    )


def _is_smaller(sentence: str) -> bool:
    return any(int(after) < int(before) for before, after in _RESIZED.findall(sentence))


def _said_at(sentence: str, activity: ScalingActivity) -> datetime:
    return parse_instant(sentence[_AT]) if _SENTENCES.match(sentence) else activity.at


def ending(instance: str, activities: Sequence[ScalingActivity], launched: datetime | None = None) -> Ending:
    """Return how the group parted with the instance. Only TerminateInstance, DetachInstances and EnterStandby with
    decrement leave "user request, shrinking the capacity". Zone balance shrinks as well, back from its own launches
    beyond the size. `launched`: when the launch that the end should offset was made, by EC2's clock. An earlier
    decrement is another request's, for one instance less than there was before.
    """
    own = next((activity for activity in activities if activity.leaves == instance), None)
    if own is None:
        return Ending.UNKNOWN
    ours = by_request(own) and (launched is None or own.at >= launched)
    return Ending.SHRUNK if ours else Ending.REPLACED


def by_request(activity: ScalingActivity) -> bool:
    """Return whether a request took the instance out with decrement: TerminateInstance, DetachInstances or
    EnterStandby.
    """
    return _ASKED_FOR in activity.cause


def staying(group: Group) -> frozenset[str]:
    """Return the members that count towards the desired size: those that are not leaving."""
    return frozenset(member.id for member in group.instances if role_of(member.lifecycle) in STAYING)


def candidates(group: Group, instances: Mapping[str, Instance]) -> tuple[GroupInstance, ...]:
    """Return the members whose termination could offset it, best first: the youngest that stays, because it carries the
    fewest pods.
    """
    present = (member for member in group.instances if role_of(member.lifecycle) in PRESENT)
    known = [member for member in present if member.id in instances and not instances[member.id].ended]
    return tuple(sorted(known, key=lambda member: (instances[member.id].launched, member.id), reverse=True))


def launches_yet(group: Group, *, without: str) -> bool:
    """Return whether fewer members stay than the desired size: the group launches more. `without`: the instance that
    has left, which a description from a moment before still lists.
    """
    return len(staying(group) - {without}) < group.desired


def surplus(surge: SurgeInstance, now: datetime, reason: str = "") -> Cause:
    """Build the cause that requests an offset. Its id is made of the entry's key, so a repeated request adds nothing.
    `reason`: defaults to that of an entry that is passed on.
    """
    passed = f"{surge.instance} was launched ahead and no termination has offset it: the group is one too large"
    return Cause(id=surplus_id(surge), kind=CauseKind.SURPLUS, at=now, reason=reason or passed, surge=surge)


def surplus_id(surge: SurgeInstance) -> str:
    """Return the id of the cause that requests an offset."""
    return f"surplus#{surge.key}"
