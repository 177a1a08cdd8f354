"""Zones of a cluster that are closed: those that Application Recovery Controller (ARC) has shifted its traffic away
from, and those that an operator evacuates, which every reader treats like a shift.

Decides what a managed resource's answer means, which zones are shifted and what the record says of an evacuated one;
the minute reconciler does the work (docs/designs/zone-evacuation.md). ARC names zones by id (use1-az1); the zone names
that nodes carry follow from the subnets, which have both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from leeward.model.codec import APART, decode, encode
from leeward.model.termination import Cause
from leeward.model.times import as_instant, format_instant

APPLIED = "APPLIED"
NEVER = datetime(2000, 1, 1, tzinfo=UTC)  # time of a sheet that no answer of ARC stands behind
REMEMBERED = timedelta(minutes=15)  # a shift that has ended, so that its end is reported


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSizes:
    """Sizes of a group, as its owner and the ledger had them."""

    minimum: int
    desired: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evacuation:
    """Evacuation of one zone. `by`: ARN of the caller; `groups` empty: the nodes of every group leave; `sizes`: of the
    groups before it, by name; `suspended`: groups whose AZRebalance Leeward has suspended for it; `returned`: when an
    operator opened the zone again, None while it is closed.
    """

    zone: str
    by: str
    since: datetime
    why: str = ""
    groups: tuple[str, ...] = ()
    sizes: Mapping[str, GroupSizes] = field(default_factory=dict)
    suspended: tuple[str, ...] = ()
    returned: datetime | None = None

    @property
    def closed(self) -> bool:
        """True while the zone is closed for new nodes."""
        return self.returned is None

    @property
    def sentence(self) -> str:
        """Words for it, such as `evacuation of us-east-1a (since 2026-03-02T10:00:00Z)`."""
        return f"evacuation of {self.zone} (since {format_instant(self.since)})"

    def covers(self, group: str) -> bool:
        """Return whether nodes of the group leave the zone."""
        return not self.groups or group in self.groups

    def cause_id(self, instance: str, attempt: int) -> str:
        """Return the id of the cause with which a node leaves. `attempt`: that of its last termination, 0 for none: a
        repeated request adds nothing, and a node that was returned to service can be asked again.
        """
        return f"{self._causes}{instance}#{attempt}"

    def caused(self, cause: Cause) -> bool:
        """Return whether the cause is one of this evacuation."""
        return cause.id.startswith(self._causes)

    @property
    def _causes(self) -> str:
        return f"evacuation#{self.zone}#{format_instant(self.since)}#"


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRecord:
    """Item of one cluster. `version` 0: there is no item."""

    cluster: str
    version: int = 0
    evacuations: tuple[Evacuation, ...] = ()

    def evacuation_of(self, zone: str) -> Evacuation | None:
        """Return the evacuation of the zone, also one that is being ended."""
        return next((one for one in self.evacuations if one.zone == zone), None)

    def with_evacuation(self, evacuation: Evacuation) -> ZoneRecord:
        """Return the record with this evacuation in place of the zone's earlier one."""
        others = tuple(one for one in self.evacuations if one.zone != evacuation.zone)
        return replace(self, evacuations=tuple(sorted((*others, evacuation), key=lambda one: one.zone)))

    def without_evacuation(self, zone: str) -> ZoneRecord:
        """Return the record without the evacuation of the zone."""
        return replace(self, evacuations=tuple(one for one in self.evacuations if one.zone != zone))


class ShiftKind(StrEnum):
    """Causes of a shift. `unknown`: the zone has no weight, and no shift explains it; `evacuation`: not ARC's, but an
    operator's (`leeward zone evacuate`).
    """

    AUTOSHIFT = "autoshift"
    PRACTICE_RUN = "practice run"
    MANUAL = "manual shift"
    FIS = "FIS experiment"
    UNKNOWN = "unknown"
    EVACUATION = "evacuation"


class ShiftSource(StrEnum):
    """Ways in which Leeward learned of a shift."""

    EVENT = "event"
    POLL = "poll"
    OPERATOR = "operator"


KINDS = {
    "ZONAL_SHIFT": ShiftKind.MANUAL,
    "PRACTICE_RUN": ShiftKind.PRACTICE_RUN,
    "FIS_EXPERIMENT": ShiftKind.FIS,
    "ZONAL_AUTOSHIFT": ShiftKind.AUTOSHIFT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonalShift:
    """Shift away from one zone. `zone`: its name, empty while no subnet of the cluster has the zone id; `since`: when
    ARC began it; `until`: when it expires by itself, None if unknown; `ended`: when Leeward learned that it is
    over.
    """

    zone_id: str
    kind: ShiftKind
    since: datetime
    source: ShiftSource = ShiftSource.POLL
    zone: str = ""
    until: datetime | None = None
    ended: datetime | None = None

    @property
    def key(self) -> str:
        """Key under which the shift is reported, the same as long as it is in effect."""
        return f"{self.zone_id}#{self.kind.value}#{format_instant(self.since)}"

    @property
    def identity(self) -> tuple[str, ShiftKind]:
        """Identity from one answer to the next: times of an event and of ARC differ, and some shifts have none."""
        return self.zone_id, self.kind

    @property
    def sentence(self) -> str:
        """Words for the shift, such as `zonal shift away from us-east-1a (practice run since 2026-03-02T10:00:00Z)`."""
        if self.kind is ShiftKind.EVACUATION:
            return f"evacuation of {self.zone} (since {format_instant(self.since)})"
        return (
            f"zonal shift away from {self.zone or self.zone_id} ({self.kind.value} since {format_instant(self.since)})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonalShifts:
    """Shifts of one cluster as last learned. `shifts`: one for each zone that is shifted or evacuated; `ended`: those
    that ended within a quarter of an hour; `failed`: why the last poll failed, empty if it did not. `read`: when ARC
    last answered, None: never.
    """

    shifts: tuple[ZonalShift, ...] = ()
    ended: tuple[ZonalShift, ...] = ()
    failed: str = ""
    read: datetime | None = field(metadata=APART, default=None)

    @property
    def zones(self) -> frozenset[str]:
        """Names of the shifted zones."""
        return frozenset(shift.zone for shift in self.shifts if shift.zone)

    def reason(self, zone: str) -> str:
        """Return why nothing is launched or voluntarily terminated in the zone now; empty if it is not shifted."""
        return next((shift.sentence for shift in self.shifts if zone and shift.zone == zone), "")

    def polled(self, answer: Iterable[ZonalShift], now: datetime, source: ShiftSource) -> ZonalShifts:
        """Return the state after ARC's answer. A shift that is known keeps its begin and the source by which it was
        learned; one that is missing from the answer has ended.
        """
        known = {shift.identity: shift for shift in self.shifts}
        evacuations = (shift for shift in self.shifts if shift.kind is ShiftKind.EVACUATION)
        shifts = (*(_kept(one, known.get(one.identity), source) for one in answer), *evacuations)
        over = tuple(replace(shift, ended=now) for shift in self.missing_from(shifts))
        ended = (*_remembered(self.ended, now), *over)
        return ZonalShifts(shifts=shifts, ended=ended, read=now)

    def not_polled(self, why: str, now: datetime, announced: ZonalShift | None = None) -> ZonalShifts:
        """Return the state after a poll that failed: the last known one, without shifts that have expired since, and
        with the shift that an event has `announced`.
        """
        over = tuple(replace(one, ended=now) for one in self.shifts if one.until is not None and one.until <= now)
        shifts = tuple(one for one in self.shifts if one.until is None or one.until > now)
        if announced is not None and announced.zone_id not in {shift.zone_id for shift in shifts}:
            shifts = (*shifts, announced)
        ended = (*_remembered(self.ended, now), *over)
        return replace(self, shifts=shifts, ended=ended, failed=why)

    def missing_from(self, shifts: Iterable[ZonalShift]) -> tuple[ZonalShift, ...]:
        """Return those of our shifts that are not among these."""
        there = {shift.identity for shift in shifts}
        return tuple(shift for shift in self.shifts if shift.identity not in there)

    def named(self, zones: Mapping[str, str]) -> ZonalShifts:
        """Return the shifts with the names of their zones; `zones`: names by zone id. A name that is known stays."""
        shifts = tuple(replace(shift, zone=zones.get(shift.zone_id, shift.zone)) for shift in self.shifts)
        return replace(self, shifts=shifts)

    def with_record(self, record: ZoneRecord) -> ZonalShifts:
        """Return the shifts with the zones that the record closes."""
        closed = (
            ZonalShift(
                zone_id=one.zone,
                zone=one.zone,
                kind=ShiftKind.EVACUATION,
                since=one.since,
                source=ShiftSource.OPERATOR,
            )
            for one in record.evacuations
            if one.closed
        )
        return replace(self, shifts=(*self.shifts, *closed))

    def to_json(self) -> dict[str, Any]:
        """Return the content of the sheet in the table: ARC's shifts alone."""
        return encode(replace(self, shifts=tuple(one for one in self.shifts if one.kind is not ShiftKind.EVACUATION)))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], read: datetime) -> ZonalShifts:
        """Parse the content of the sheet that was written for the answer at `read`."""
        return decode(cls, raw, read=read if read > NEVER else None)


NOT_SHIFTED = ZonalShifts()


def applied_shifts(answer: Mapping[str, Any], now: datetime) -> tuple[ZonalShift, ...]:
    """Parse GetManagedResource: the shifts in effect, one for each zone id. Shifts that are NOT_APPLIED give way to
    another one; a zone of weight 0 without any shift is shifted all the same, since `now`.
    """
    applied = [_of_zonal_shift(raw) for raw in answer.get("zonalShifts") or () if raw.get("appliedStatus") == APPLIED]
    applied += [_of_autoshift(raw) for raw in answer.get("autoshifts") or () if raw.get("appliedStatus") == APPLIED]
    by_zone = {shift.zone_id: shift for shift in reversed(applied)}
    for zone_id, weight in (answer.get("appliedWeights") or {}).items():
        if not weight and zone_id not in by_zone:
            by_zone[zone_id] = ZonalShift(zone_id=zone_id, kind=ShiftKind.UNKNOWN, since=now)
    return tuple(by_zone[zone_id] for zone_id in sorted(by_zone))


def _of_zonal_shift(raw: Mapping[str, Any]) -> ZonalShift:
    """Parse one element of `zonalShifts`. The expiry of an experiment is no end: AWS FIS asks for one minute at a time
    and renews it (FIS user guide, "aws:arc:start-zonal-autoshift"), so one lost answer of ARC would open the zone.
    """
    kind = KINDS.get(raw.get("shiftType") or "ZONAL_SHIFT", ShiftKind.UNKNOWN)
    expires = raw.get("expiryTime") if kind is not ShiftKind.FIS else None
    return ZonalShift(
        zone_id=raw["awayFrom"],
        kind=kind,
        since=as_instant(raw["startTime"]),
        until=as_instant(expires) if expires else None,
    )


def _of_autoshift(raw: Mapping[str, Any]) -> ZonalShift:
    return ZonalShift(zone_id=raw["awayFrom"], kind=ShiftKind.AUTOSHIFT, since=as_instant(raw["startTime"]))


def _kept(shift: ZonalShift, known: ZonalShift | None, source: ShiftSource) -> ZonalShift:
    if known is None:
        return replace(shift, source=source)
    return replace(shift, source=known.source, since=known.since, zone=known.zone)


def _remembered(ended: Iterable[ZonalShift], now: datetime) -> tuple[ZonalShift, ...]:
    return tuple(shift for shift in ended if shift.ended is not None and now - shift.ended < REMEMBERED)
