"""The upgrade's side of the capacity ledger: what the ends of old nodes have offset, and what is still to be offset.

Decides from the upgrade's record and from the termination records of the old instances whose termination it
requested. Each new node launched ahead raises the desired size by one; one termination with decrement of a named old
node offsets it (docs/designs/capacity-ledger.md, docs/designs/upgrade.md)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from leeward.model.capacity import NoOffset, Offset
from leeward.model.group import ScalingActivity
from leeward.model.termination import Outcome, Status, TerminationRecord
from leeward.ports.records import Claims
from leeward.termination import capacity_ledger
from leeward.termination.capacity_ledger import Ending
from leeward.termination.decisions import RESTS, held_for_upgrade
from leeward.termination.requests import read_apart
from leeward.upgrade.record import UpgradeRecord, cause_id, surge_of

SECOND_OBSERVATION = timedelta(seconds=60)  # a launch may be visible in the group before it is recorded
MOST_WARNINGS, LONGEST_WARNING = 20, 500
MOST_REASONS, LONGEST_REASON = 100, 300  # the ids of all failures are kept: an item of the table holds 400 KB


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """The record with everything that is known to have ended."""

    record: UpgradeRecord
    unclaimed: tuple[str, ...] = ()  # under way without a termination request: the step that was to make it died
    # old instance -> why its drain has failed, as far as it is new
    failures: Mapping[str, str] = field(default_factory=dict)
    unforced: tuple[str, ...] = ()  # termination requested without force, which this start asks for


def conclude(
    record: UpgradeRecord, terminations: Mapping[str, TerminationRecord], unreadable: Collection[str] = ()
) -> LedgerView:
    """Update the record from every old instance that is under way. Run again on the result, it changes nothing.
    `unreadable`: instances whose termination record cannot be read; nothing is concluded of them.
    """
    unclaimed: list[str] = []
    failures: dict[str, str] = {}
    unforced: list[str] = []
    for old in [name for name in record.under_way if name not in unreadable]:
        termination = terminations.get(old)
        if termination is None or not _is_requested(record, old, termination):
            unclaimed.append(old)
            continue
        record = _offset(record, old, termination)
        if termination.status is Status.CLOSED and termination.outcome is Outcome.TERMINATED:
            record = replace(_left(record, old), finished=record.finished + 1)
        elif _returned_to_service(record, old, termination):
            failures[old] = "; ".join(termination.blocked_by) or "its pods did not leave in time"
            record = _failed(_left(record, old), old, failures[old])
        elif record.request.force and not termination.forced:
            unforced.append(old)
    return LedgerView(record=record, unclaimed=tuple(unclaimed), failures=failures, unforced=tuple(unforced))


def concluded(record: UpgradeRecord, claims: Claims) -> UpgradeRecord:
    """Return the record updated from the terminations under way: they may have ended while no execution of the upgrade
    ran.
    """
    ends = read_apart(record.under_way, claims)
    return conclude(record, ends.read, ends.unreadable.keys()).record


def held_by_hook(
    record: UpgradeRecord, terminations: Mapping[str, TerminationRecord], time_out: timedelta, now: datetime
) -> dict[str, str]:
    """Return the old instances that their hook holds because pods have not left in time, and why (`update.terminate:
    first`). The termination was requested from the group already, so they cannot be returned to service: they end when
    the pods leave, or when the termination is requested again with force.
    """
    held: dict[str, str] = {}
    for old in record.under_way:
        termination = terminations.get(old)
        if termination is None or termination.status is Status.CLOSED or termination.forced:
            continue
        began = termination.times.get("draining", now)
        if held_for_upgrade(termination) and now - began > time_out:
            held[old] = "; ".join(termination.blocked_by) or "its pods did not leave in time"
    return held


def settle_held(
    record: UpgradeRecord,
    held: Mapping[str, TerminationRecord],
    activities: Sequence[ScalingActivity],
    now: datetime,
) -> UpgradeRecord:
    """Settle what the instances that their hook holds have offset, by the group's own activities. Where a step died
    between the request to the group and its record, the termination finds it out at its end, which may never come. A
    launch that the group does not take off its size, or has not reported for long, becomes unassigned.
    """
    for old, termination in held.items():
        new = offset_by(record, old)
        if new is None:
            continue
        match capacity_ledger.ending(old, activities):
            case Ending.SHRUNK:
                record = replace(without(record, [new]), gone=record.gone + 1)
            case Ending.UNKNOWN if now - termination.times.get("terminating", now) <= capacity_ledger.LATEST_WORD:
                continue
            case _:
                record = record.with_offsets({new: None})
    return record


def _is_requested(record: UpgradeRecord, old: str, termination: TerminationRecord) -> bool:
    """Return whether both causes have joined: its own, and that of the offset where it has one."""
    new = offset_by(record, old)
    return termination.knows(cause_id(record, old)) and (
        new is None or capacity_ledger.is_requested(termination, surge_of(record, new, old))
    )


def offset_by(record: UpgradeRecord, old: str) -> str | None:
    """Return the new instance that the termination of this old one offsets, None where it offsets none."""
    return next((new for new, surge in record.ahead.items() if surge.offset_by == old), None)


def _offset(record: UpgradeRecord, old: str, termination: TerminationRecord) -> UpgradeRecord:
    new = offset_by(record, old)
    if new is None:
        return record
    settlement = termination.offsets.get(surge_of(record, new, old))
    if settlement is None:
        return record
    if settlement == Offset(instance=old):
        return replace(without(record, [new]), gone=record.gone + 1)
    if settlement is NoOffset.WRITTEN_OFF:
        return with_warning(without(record, [new]), f"the launch of {new} was written off when {old} ended")
    return record.with_offsets({new: None})


def _returned_to_service(record: UpgradeRecord, old: str, termination: TerminationRecord) -> bool:
    """Return whether the node was returned to service: its record is closed so; or kept open for a maintenance that
    lies ahead: it is in cooldown since a time-out after the upgrade had requested its termination, and the request of
    an offset has come back.
    """
    if termination.status is Status.CLOSED:
        return True
    requested_at = next(cause.at for cause in termination.all_causes if cause.id == cause_id(record, old))
    rests = termination.times.get("retry", requested_at) - RESTS >= requested_at
    return rests and offset_by(record, old) is None


def _left(record: UpgradeRecord, old: str) -> UpgradeRecord:
    """Remove the instance from those under way; a launch that it was to offset and has not becomes unassigned."""
    under_way = {name: tag for name, tag in record.under_way.items() if name != old}
    new, early = offset_by(record, old), tuple(name for name in record.early if name != old)
    return replace(record, under_way=under_way, early=early).with_offsets({new: None} if new is not None else {})


def _failed(record: UpgradeRecord, old: str, why: str) -> UpgradeRecord:
    """Record that its drain has failed once more. Reasons are kept of the latest nodes alone: they
    repeat each other.
    """
    reasons = {name: reason for name, reason in record.reasons.items() if name != old}
    latest = [*reasons.items(), (old, why[:LONGEST_REASON])][-MOST_REASONS:]
    return replace(record, failed=(*record.failed, old), reasons=dict(latest))


def with_late_offsets(
    record: UpgradeRecord, terminations: Mapping[str, TerminationRecord]
) -> tuple[UpgradeRecord, list[str]]:
    """Assign launches without an old node to those that started before their launch, first to those that have drained.
    Return the instances of which the offset is to be requested: it joins their termination.
    """
    drained = [old for old in record.early if old in terminations and "drained" in terminations[old].times]
    order = [*drained, *(old for old in record.early if old not in drained)]
    offsets = dict(zip(record.unassigned, order, strict=False))
    left = tuple(old for old in record.early if old not in offsets.values())
    return replace(record, early=left).with_offsets(offsets), list(offsets.values())


def not_requested(record: UpgradeRecord, old: Iterable[str]) -> UpgradeRecord:
    """Keep them in service for now: their termination has not been requested yet. Their tags are not used again."""
    for one in old:
        record = _left(replace(record, taken_back=record.taken_back + 1), one)
    return record


def ended_before_request(record: UpgradeRecord, old: str) -> UpgradeRecord:
    """Record that the instance ended before its termination was requested."""
    return replace(_left(record, old), finished=record.finished + 1)


def without(record: UpgradeRecord, new: Iterable[str]) -> UpgradeRecord:
    """Remove new instances that are offset, written off, or passed on to a termination."""
    gone = set(new)
    return replace(record, ahead={name: surge for name, surge in record.ahead.items() if name not in gone})


def with_warning(record: UpgradeRecord, warning: str) -> UpgradeRecord:
    """Add a warning for operators: an event that they may wonder about."""
    warning = warning[:LONGEST_WARNING]
    if warning in record.warnings:
        return record
    return replace(record, warnings=(*record.warnings, warning)[-MOST_WARNINGS:])


def detect_resize(record: UpgradeRecord, *, desired: int, of_others: int, shrunk: bool, now: datetime) -> UpgradeRecord:
    """Detect that another writer has changed the group's size. Then the remaining old nodes terminate without
    decrement, and the size is not restored (EKS leaves its scale-down phase at once when Cluster Autoscaler scales the
    group up). A smaller size, which the group's history shows, was chosen by a writer that saw the larger one: nothing
    is taken off it.

    `of_others`: launches of other terminations in the group that are not offset. A larger size is believed at the
    second observation.
    """
    if record.others_scaled is not None or record.orders:
        return record
    explained = record.explained + of_others
    grown = desired > explained
    if not grown and not shrunk:
        return replace(record, others_seen=None) if record.others_seen else record
    if grown and not shrunk:
        if record.others_seen is None:
            return replace(record, others_seen=now)
        if now - record.others_seen < SECOND_OBSERVATION:
            return record
    what = "made it smaller" if shrunk else f"scaled it up: desired is {desired}, {explained} are explained"
    warning = f"others {what}; the rest terminates without decrement and the size stays"
    return with_warning(replace(without(record, record.unassigned), others_scaled=now), warning)
