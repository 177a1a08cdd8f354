"""Launches whose instance has ended before an old node offset them, and decrements by others during an upgrade.

Decides from the group's scaling history (docs/designs/capacity-ledger.md). An instance that ended with decrement has
offset its own launch. One that the group replaces hands its launch on to the replacement. Any other instance that
another actor takes out with decrement takes an open launch: the surge was in that actor's view."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from leeward.model.capacity import Offset
from leeward.model.group import ScalingActivity
from leeward.model.termination import TerminationRecord
from leeward.ports.records import Claims
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import Ending, by_request
from leeward.termination.ledger_settlement import offsets_another
from leeward.termination.requests import read_apart
from leeward.upgrade.capacity_ledger import with_warning, without
from leeward.upgrade.gate import CLOCKS
from leeward.upgrade.members import Age
from leeward.upgrade.observation import Observation
from leeward.upgrade.record import EndedLaunch, SurgeNode, UpgradeRecord

REPLACED_WITHIN = timedelta(minutes=3)  # by its group; until then the zone of an ended instance counts as served
MOST_IN_A_ZONE = 3  # launches of one start that may end early in a zone in which no new node is Ready
MOST_KEPT, MOST_TAKEN = 30, 100
LONGEST_CAUSE = 200


def settled(
    record: UpgradeRecord, observation: Observation, activities: Sequence[ScalingActivity], claims: Claims
) -> UpgradeRecord:
    """Return the record without launches that their own end has offset, with replacements in place of the others that
    have ended, and without launches that decrements by others have taken. Run again on the result, it changes nothing.
    """
    staying = capacity_ledger.staying(observation.group)
    gone = [new for new in record.unassigned if new not in staying]
    terminations = read_apart(gone, claims).read
    for new in gone:
        activity = next((one for one in activities if one.leaves == new), None)
        if activity is not None:
            record = _ended(record, new, activity, terminations.get(new), observation)
    return _taken_by_others(record, observation, activities, claims)


def _ended(
    record: UpgradeRecord,
    new: str,
    activity: ScalingActivity,
    termination: TerminationRecord | None,
    observation: Observation,
) -> UpgradeRecord:
    record = _with_ended(record, new, activity)
    another = offsets_another(termination, new)
    own = new not in record.taken  # else its decrement has settled another launch
    if capacity_ledger.ending(new, [activity]) is Ending.SHRUNK and own and not another:
        return replace(without(record, [new]), taken=_with_taken(record, new))
    heir = _replacement(termination) if another else _heir(record, observation, activity.at)
    return _handed_on(record, new, heir, observation) if heir else record


def _with_ended(record: UpgradeRecord, new: str, activity: ScalingActivity) -> UpgradeRecord:
    if new in record.ended_early:
        return record
    launch = EndedLaunch(zone=record.ahead[new].zone, at=activity.at, cause=activity.cause[:LONGEST_CAUSE])
    kept = [*record.ended_early.items(), (new, launch)][-MOST_KEPT:]
    warning = f"{new} in {launch.zone} was launched ahead and ended before an old node left for it: {launch.cause}"
    return with_warning(replace(record, ended_early=dict(kept)), warning)


def _replacement(termination: TerminationRecord | None) -> str:
    """Return the instance that the termination of an ended launch launched in its place, whose launch it offset."""
    surge = termination.surge if termination is not None else None
    return surge.instance if surge is not None else ""


def _heir(record: UpgradeRecord, observation: Observation, at: datetime) -> str:
    """Return the instance that the group launched in place of one that ended at `at`, empty while there is none: a new
    node where there is one, else one of an earlier target, which the group launched between two starts.
    """
    known = {*record.ahead, *record.counted, *record.ended_early}
    later = list[tuple[bool, datetime, str]]()
    for member in observation.preflight.members:
        instance = observation.instances.get(member.instance.id)
        if instance is not None and instance.id not in known and instance.launched >= at - CLOCKS:
            later.append((member.age is not Age.NEW, instance.launched, instance.id))
    return min(later, default=(False, at, ""))[2]


def _handed_on(record: UpgradeRecord, new: str, heir: str, observation: Observation) -> UpgradeRecord:
    if heir in record.ahead:
        return record
    zones = {one.instance.id: one.instance.zone for one in observation.preflight.members}
    place = SurgeNode(zone=zones.get(heir) or record.ahead[new].zone)
    return replace(record, ahead={**without(record, [new]).ahead, heir: place})


def _taken_by_others(
    record: UpgradeRecord, observation: Observation, activities: Sequence[ScalingActivity], claims: Claims
) -> UpgradeRecord:
    """Settle as many open launches as others have taken members out with decrement: no more than the desired size is
    smaller than the record explains, and only launches that no termination is requested to offset. Where each is
    requested, as many are owed: `launches` adds them, and the next turn settles them.
    """
    lacking = record.explained - observation.group.desired
    others = _decrements(record, activities, claims)[:lacking] if lacking > 0 and record.ahead else []
    for name, new in zip(others, reversed(record.unassigned), strict=False):
        record = replace(without(record, [new]), taken=_with_taken(record, name))
        record = with_warning(record, f"others took {name} out with decrement: it offsets the launch of {new}")
    owed = sum(name not in record.taken for name in others)
    return replace(record, owed=owed) if owed != record.owed else record


def _decrements(record: UpgradeRecord, activities: Sequence[ScalingActivity], claims: Claims) -> list[str]:
    """Return the instances that others took out with decrement since the first launch and that settled no launch."""
    known = {*record.taken, *record.under_way}
    left = [one.leaves for one in activities if by_request(one) and one.at >= record.measured]
    taken = [name for name in left if name is not None and name not in known]
    terminations = read_apart(taken, claims).read
    ours = {name for name, one in terminations.items() if Offset(instance=name) in one.offsets.values()}
    return [name for name in taken if name not in ours]


def _with_taken(record: UpgradeRecord, name: str) -> tuple[str, ...]:
    return (*record.taken, name)[-MOST_TAKEN:]


def is_awaited(record: UpgradeRecord, new: str, now: datetime) -> bool:
    """Return whether the launch serves its zone, or soon will: its instance has not ended, or the group may still be
    about to replace it.
    """
    ended = record.ended_early.get(new)
    return ended is None or now - ended.at < REPLACED_WITHIN


def ended_in(record: UpgradeRecord, zone: str) -> dict[str, EndedLaunch]:
    """Return the launches of this start that ended early in the zone."""
    return {new: launch for new, launch in record.ended_early.items() if launch.zone == zone}


def is_worn_out(record: UpgradeRecord, zone: str) -> bool:
    """Return whether so many launches have ended early in the zone that no more is tried while no new node is Ready
    there: the cause is not chance.
    """
    return len(ended_in(record, zone)) >= MOST_IN_A_ZONE
