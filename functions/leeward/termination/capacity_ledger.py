"""Capacity ledger (docs/designs/capacity-ledger.md): the debts of a termination, and whether its end has paid them.

Each launch by Leeward raises the desired size by one. This is a debt, named after the instance for which the launch was
made. One terminate-with-decrement pays it. It is forgiven if another actor has shrunk the group on purpose since then,
with the larger size in view. It passes on to another named instance if the group replaced the instance that should have
paid."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from leeward.model.group import Group, GroupInstance, ScalingActivity
from leeward.model.instance import Instance
from leeward.model.termination import Cause, CauseKind, TerminationRecord

DEBT = "debt#"  # a surplus cause is DEBT + the instance for which the launch was made
OF_UPGRADE = "/upgrade-"  # in the name of a debt: an upgrade launched it ahead; an unpaid debt returns to the upgrade
OF_DISRUPTION = "/disruption-"  # the same for a disruption run, which also deletes nodes this way
STAYING = ("Pending", "InService")
LATEST_WORD = timedelta(minutes=15)  # no activity of the group by then: nothing is terminated on a guess
MARGIN = timedelta(minutes=5)  # between our clock and the group's

_RESIZED = re.compile(r"changing the desired capacity from (\d+) to (\d+)")
_ASKED_FOR = "in response to a user request, shrinking the capacity"


class Ending(StrEnum):
    """Ways in which the group parted with an instance."""

    SHRUNK = "shrunk"  # the group became smaller on purpose: by our decrement, or by another actor's request
    REPLACED = "replaced"  # the group launches another in its place, or parted with it before the launch
    UNKNOWN = "unknown"  # no activity reports it yet


def debts(record: TerminationRecord) -> tuple[str, ...]:
    """Return the launches that this instance's end has to pay for, by the instances for which they were made. A debt of
    an earlier period counts until it is accounted for.
    """
    own = (record.surge_name,) if record.replacement is not None and record.replacement.owed else ()
    taken_over = tuple(cause.id.removeprefix(DEBT) for cause in record.all_causes if cause.kind is CauseKind.SURPLUS)
    return tuple(debt for debt in dict.fromkeys((*own, *taken_over)) if debt not in record.payers)


def of_upgrade(debt: str) -> bool:
    """Return whether an upgrade or a disruption run accounts for the debt: returned there, never passed on here."""
    return OF_UPGRADE in debt or OF_DISRUPTION in debt


def passed_on(record: TerminationRecord) -> Mapping[str, str]:
    """Map each debt to the other instance that was asked to pay it."""
    return {debt: payer for debt, payer in record.payers.items() if payer.startswith("i-") and payer != record.instance}


def only_surplus(record: TerminationRecord) -> bool:
    """Return whether no other cause requests the termination of this instance."""
    return all(cause.kind is CauseKind.SURPLUS for cause in record.causes)


def was_asked(record: TerminationRecord, debt: str) -> bool:
    """Return whether the instance was to pay the debt before and could not: its record names the new payer."""
    return debt in record.payers or record.knows(DEBT + debt)


def owed_since(record: TerminationRecord, debt: str) -> datetime | None:
    """Return when the group became one larger, as far as this record knows."""
    joined = next((cause.at for cause in record.all_causes if cause.id == DEBT + debt), None)
    return joined or record.times.get("replacement") or record.times.get("claimed")


def shrunk_since(activities: Iterable[ScalingActivity], since: datetime) -> bool:
    """Return whether another actor has set a smaller size since then: a person, a schedule or a scaling policy. Leeward
    never does.

    Source: "How do I find out why a scale-in happened" of the AWS knowledge centre: each of the three leaves the words
    "changing the desired capacity from X to Y" in the cause.
    """
    sizes = (found for activity in activities if activity.at >= since for found in _RESIZED.findall(activity.cause))
    return any(int(after) < int(before) for before, after in sizes)


def ending(instance: str, activities: Sequence[ScalingActivity], launched: datetime | None = None) -> Ending:
    """Return how the group parted with the instance. Only TerminateInstance, DetachInstances and EnterStandby with
    decrement leave "user request, shrinking the capacity". Zone balance shrinks as well, back from its own launches
    beyond the size. `launched`: when the launch that the end should pay for was made, by EC2's clock. An earlier
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


def candidates(group: Group, instances: Mapping[str, Instance]) -> tuple[GroupInstance, ...]:
    """Return the members that could pay, best first: the youngest that stays, because it carries the fewest pods."""
    staying = [member for member in group.instances if member.lifecycle.startswith(STAYING)]
    known = [member for member in staying if member.id in instances and not instances[member.id].ended]
    return tuple(sorted(known, key=lambda member: (instances[member.id].launched, member.id), reverse=True))


def launches_yet(group: Group, *, without: str) -> bool:
    """Return whether fewer members stay than the desired size: the group launches more. `without`: the instance that
    has left, which a description from a moment before still lists.
    """
    others = (member for member in group.instances if member.id != without)
    return sum(member.lifecycle.startswith(STAYING) for member in others) < group.desired


def surplus(debt: str, now: datetime) -> Cause:
    """Build the cause of the payer's termination. Its id is the debt's, so passing the debt on twice adds nothing."""
    reason = f"a launch made for {debt} was not taken back when that instance went: the group is one too large"
    return Cause(id=DEBT + debt, kind=CauseKind.SURPLUS, at=now, reason=reason)
