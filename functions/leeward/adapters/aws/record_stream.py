"""Stream of the table as Lambda delivers it: the changes of each write to a record of a termination, an upgrade or a
disruption run, or to a pause switch.

Items of other kinds are skipped here as well as by the event source mapping's filter, so that a change of the filter
cannot make the function fail."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from leeward.adapters.aws.pauses import PAUSE, pause_record
from leeward.adapters.aws.record_items import TERMINATION, record_of
from leeward.adapters.aws.table import from_wire
from leeward.adapters.aws.workflow_records import DISRUPTION, UPGRADE, run_of, upgrade_of
from leeward.disruption.record import DisruptionRecord
from leeward.errors import LeewardError
from leeward.isolation import attempt
from leeward.model.pause import PauseRecord
from leeward.model.termination import TerminationRecord
from leeward.upgrade.record import UpgradeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChange:
    """Termination record before and after one write; `before` None: it is new. `at`: when it was written."""

    before: TerminationRecord | None
    after: TerminationRecord
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseChange:
    """Pause switch of a cluster before and after one write; `before` None: it is new. `at`: when it was written."""

    before: PauseRecord | None
    after: PauseRecord
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeChange:
    """Record of a group's upgrade before and after one write; `before` None: it is new. `at`: when it was written."""

    before: UpgradeRecord | None
    after: UpgradeRecord
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChange:
    """Record of a cluster's disruption run before and after one write; `before` None: it is new. `at`: when it was
    written.
    """

    before: DisruptionRecord | None
    after: DisruptionRecord
    at: datetime


Change = RecordChange | PauseChange | UpgradeChange | RunChange
KEYS = (f"{TERMINATION}#", f"{PAUSE}#", f"{UPGRADE}#", f"{DISRUPTION}#")
"""Beginnings of the keys of what is announced; the event source mapping passes no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableChange:
    """Item that looks like a record or a switch and is none; `why` names what is wrong."""

    key: str
    why: str


def record_changes(event: Mapping[str, Any]) -> Iterator[Change | UnreadableChange]:
    """Yield the changes in the stream's order. A record that time to live has deleted yields nothing."""
    for raw in event["Records"]:
        found = attempt(partial(_change, raw))
        if isinstance(found, LeewardError):
            yield UnreadableChange(key=_key(raw), why=str(found))
        elif found is not None:
            yield found


def _change(raw: Mapping[str, Any]) -> Change | None:
    change = raw["dynamodb"]
    key, after = change["Keys"]["pk"]["S"], change.get("NewImage")
    if not key.startswith(KEYS) or not after:
        return None
    at = datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC)
    new, old = _plain(after), _plain(change["OldImage"]) if change.get("OldImage") else None
    if key.startswith(f"{PAUSE}#"):
        return PauseChange(before=pause_record(old) if old else None, after=pause_record(new), at=at)
    if key.startswith(f"{UPGRADE}#"):
        return UpgradeChange(before=upgrade_of(old) if old else None, after=upgrade_of(new), at=at)
    if key.startswith(f"{DISRUPTION}#"):
        return RunChange(before=run_of(old) if old else None, after=run_of(new), at=at)
    return RecordChange(before=record_of(old) if old else None, after=record_of(new), at=at)


def _key(raw: Mapping[str, Any]) -> str:
    return str(((raw.get("dynamodb") or {}).get("Keys") or {}).get("pk", {}).get("S", "?"))


def changes_of(event: Mapping[str, Any]) -> tuple[list[Change], list[UnreadableChange]]:
    """Return the changes that can be read, and those that cannot."""
    found: Iterable[Change | UnreadableChange] = tuple(record_changes(event))
    return [c for c in found if isinstance(c, Change)], [c for c in found if isinstance(c, UnreadableChange)]


def _plain(image: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_wire(value) for name, value in image.items()}
