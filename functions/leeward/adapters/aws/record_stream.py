"""Stream of the table as Lambda delivers it: the changes of each write to a record of a termination, an upgrade or a
disruption run, or to a pause switch.

Items of other kinds are skipped here as well as by the event source mapping's filter, so that a change of the filter
cannot make the function fail."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, TypeVar

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

RecordT = TypeVar("RecordT", bound=TerminationRecord | PauseRecord | UpgradeRecord | DisruptionRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChange(Generic[RecordT]):
    """Record of a termination, an upgrade or a disruption run, or pause switch, before and after one write."""

    before: RecordT | None  # None: it is new
    after: RecordT
    at: datetime  # when it was written


Change = (
    RecordChange[TerminationRecord]
    | RecordChange[PauseRecord]
    | RecordChange[UpgradeRecord]
    | RecordChange[DisruptionRecord]
)
READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    f"{TERMINATION}#": record_of,
    f"{PAUSE}#": pause_record,
    f"{UPGRADE}#": upgrade_of,
    f"{DISRUPTION}#": run_of,
}
KEYS = tuple(READERS)
"""Beginnings of the keys of what is announced; the event source mapping passes no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableChange:
    """Item that looks like a record or a switch and is none; `why` names what is wrong."""

    key: str
    why: str


def record_changes(event: Mapping[str, Any]) -> Iterator[Change | UnreadableChange]:
    """Yield the changes in the stream's order. A record that time to live has deleted yields nothing."""
    for raw in event["Records"]:
        change = attempt(partial(_change, raw))
        if isinstance(change, LeewardError):
            yield UnreadableChange(key=_key(raw), why=str(change))
        elif change is not None:
            yield change


def _change(raw: Mapping[str, Any]) -> Change | None:
    change = raw["dynamodb"]
    key, after = change["Keys"]["pk"]["S"], change.get("NewImage")
    if not key.startswith(KEYS) or not after:
        return None
    read = next(reader for beginning, reader in READERS.items() if key.startswith(beginning))
    before = change.get("OldImage")
    return RecordChange(
        before=read(_plain(before)) if before else None,
        after=read(_plain(after)),
        at=datetime.fromtimestamp(float(change["ApproximateCreationDateTime"]), UTC),
    )


def _key(raw: Mapping[str, Any]) -> str:
    return str(((raw.get("dynamodb") or {}).get("Keys") or {}).get("pk", {}).get("S", "?"))


def changes_of(event: Mapping[str, Any]) -> tuple[list[Change], list[UnreadableChange]]:
    """Return the changes that can be read, and those that cannot."""
    changes, unreadable = list[Change](), list[UnreadableChange]()
    for change in record_changes(event):
        if isinstance(change, UnreadableChange):
            unreadable.append(change)
        else:
            changes.append(change)
    return changes, unreadable


def _plain(image: Mapping[str, Any]) -> dict[str, Any]:
    return {name: from_wire(value) for name, value in image.items()}
