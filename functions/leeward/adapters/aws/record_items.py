"""Termination records as DynamoDB items and back. Layout of the table, no calls.

A cause is a map under its id, so that two causes can join at the same moment without overwriting each other; `joined`
keeps the order in which they came and `period` the opening of the record to which they belong. `offsets` is a map from
the key of a ledger entry, so that the first settlement is kept by a conditional write, to a map of its own; `surge` of
a cause is the entry that it requests. Everything else is as `model.codec` writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from leeward.model.capacity import NoOffset, Offset, Settlement, SurgeInstance
from leeward.model.codec import decode, decode_item, encode
from leeward.model.termination import Cause, Outcome, Status, Subject, TerminationRecord
from leeward.model.times import format_instant, parse_instant

TERMINATION = "termination"  # value of the sparse index's hash key, and first part of a record's key
ONCE = "once"
COUNT = "count"

Item = dict[str, Any]  # plain Python values; `claims` handles the wire's types


def record_key(instance: str) -> str:
    """Return `termination#i-…`."""
    return f"{TERMINATION}#{instance}"


def once_key(key: str) -> str:
    """Return `once#KEY`."""
    return f"{ONCE}#{key}"


def count_key(key: str) -> str:
    """Return `count#KEY`."""
    return f"{COUNT}#{key}"


def instance_of(key: str) -> str:
    """Return the instance of a record's key."""
    return key.removeprefix(f"{TERMINATION}#")


def new_record(subject: Subject, cause: Cause, now: datetime, *, deployment: str, also: Sequence[Cause] = ()) -> Item:
    """Return the item of a first claim. It has all maps from the start: DynamoDB cannot write into an absent one."""
    return {
        "pk": record_key(subject.instance),
        "open": TERMINATION,
        "deployment": deployment,
        "status": Status.OPEN.value,
        "attempt": 1,
        "version": 1,
        "period": 1,
        "surgePeriod": 1,
        "namesTaken": 0,
        "subject": encode(subject),
        "causes": {
            each.id: cause_item(each, now + timedelta(milliseconds=place), period=1)
            for place, each in enumerate((cause, *also))
        },
        "times": {"claimed": format_instant(now)},
        "heartbeats": {},
        "offsets": {},
        "surges": {},
        "reboots": {},
        "blockedBy": [],
        "evicted": 0,
    }


def cause_item(cause: Cause, joined: datetime, *, period: int) -> Item:
    """Return one map under `causes`."""
    return {**encode(cause), "joined": format_instant(joined), "period": period}


def times_item(times: Mapping[str, datetime]) -> Item:
    """Return the maps `times` and `heartbeats`."""
    return {name: format_instant(at) for name, at in times.items()}


def record_of(item: Mapping[str, Any]) -> TerminationRecord:
    """Return the record that an item holds. Raises NewerRecordError for a word that decides and is not known here, or
    for another shape. During an update, and after its rollback, functions read what a newer version wrote: an unknown
    outcome of a closed record is None.
    """
    return decode_item(item, _record_of)


def _record_of(item: Mapping[str, Any]) -> TerminationRecord:
    causes = sorted(item.get("causes", {}).items(), key=lambda entry: _order(entry[1]))
    period = int(item["period"])
    return decode(
        TerminationRecord,
        {**item, "outcome": item.get("outcome") if item.get("outcome") in list(Outcome) else None},
        causes=tuple(decode(Cause, raw, id=id) for id, raw in causes if _decides(raw, period)),
        earlier_causes=tuple(decode(Cause, raw, id=id) for id, raw in causes if not _decides(raw, period)),
        offsets=offsets_of(item.get("offsets", {})),
    )


def _order(raw: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """Return when a cause joined, then when it happened: as moments, for texts of whole seconds sort after others."""
    at = parse_instant(raw["at"])
    return parse_instant(raw["joined"]) if raw.get("joined") else at, at


def _decides(raw: Mapping[str, Any], period: int) -> bool:
    return bool(raw["period"] == period and not raw.get("withdrawn", False))


def offset_item(surge: SurgeInstance, settlement: Settlement) -> Item:
    """Return the map under `offsets`: the entry, and `by` (the instance whose termination offsets it) or `none` (why no
    termination does).
    """
    match settlement:
        case Offset(instance=instance):
            return {"surge": encode(surge), "by": instance}
        case NoOffset():
            return {"surge": encode(surge), "none": settlement.value}


def offsets_of(raw: Mapping[str, Mapping[str, Any]]) -> dict[SurgeInstance, Settlement]:
    """Return the settlements that the map `offsets` holds."""
    return {
        decode(SurgeInstance, each["surge"]): Offset(instance=each["by"]) if "by" in each else NoOffset(each["none"])
        for each in raw.values()
    }
