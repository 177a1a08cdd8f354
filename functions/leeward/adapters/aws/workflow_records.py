"""`ports.records.Upgrades` and `Disruptions` on DynamoDB, written at the version that was read.

An upgrade is one item a group, `upgrade#GROUP`, and one beside it, `plan#GROUP`, with the result of pre-flight; a run
one item a cluster, `disruption#CLUSTER`. Groups of other accounts and Regions than the deployment's own, of which one
may have the same name, have `ACCOUNT/REGION/` before it in their keys. Items are the records' fields, by their
types."""

import json
import types
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from zlib import compress, decompress

from leeward.adapters.aws.record_items import MALFORMED
from leeward.adapters.aws.table import DynamoTable
from leeward.disruption.record import DisruptionRecord
from leeward.errors import NewerRecordError
from leeward.model.times import format_instant, parse_instant
from leeward.upgrade.record import UpgradeRecord

MOST_READABLE = 250_000  # characters that are stored uncompressed: an item takes 400 KB
ALWAYS = "attribute_exists(pk) OR attribute_not_exists(pk)"
UPGRADE = "upgrade"  # first part of a record's key
DISRUPTION = "disruption"  # first part of a record's key


class DynamoUpgrades:
    """Records of upgrades in the table `leeward`. They stay: a rollback needs what an ended one replaced."""

    def __init__(self, table: DynamoTable, scope: str = "") -> None:
        """`scope`: `ACCOUNT/REGION/` of groups elsewhere, before their names in the keys."""
        self._table = table
        self._scope = scope

    def read(self, group: str) -> UpgradeRecord | None:
        """Read the record with one GetItem, strongly consistent."""
        item = self._table.get(self._key(group))
        return upgrade_of(item) if item is not None else None

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Read the records with BatchGetItem, a hundred at a time."""
        records = [upgrade_of(item) for item in self._table.get_all(map(self._key, groups), consistent=True)]
        return {record.group: record for record in records}

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """Write the record with one conditional PutItem, at the version that was read of the same upgrade."""
        written = replace(record, version=record.version + 1)
        item = {"pk": self._key(record.group), **upgrade_item(written)}
        return written if self._table.put_version(item, version=record.version, same="began") else None

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """Store the plan with one PutItem of at most 400 KB. As JSON: it has numbers that the records have not. The
        waves of thousands of nodes are compressed.
        """
        text = json.dumps(document)
        said = {"document": text} if len(text) <= MOST_READABLE else {"compressed": _compressed(text)}
        self._table.put({"pk": self._plan_key(group), **said}, condition=ALWAYS)

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """Read the plan with one GetItem."""
        item = self._table.get(self._plan_key(group))
        if item is None:
            return None
        found: Mapping[str, Any] = json.loads(item.get("document") or _expanded(item["compressed"]))
        return found

    def _key(self, group: str) -> str:
        return upgrade_key(f"{self._scope}{group}")

    def _plan_key(self, group: str) -> str:
        return f"plan#{self._scope}{group}"


class DynamoDisruptions:
    """Records of runs in the table `leeward`. They stay: they hold which groups are in cooldown."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Read the record with one GetItem, strongly consistent."""
        item = self._table.get(_key(cluster))
        return run_of(item) if item is not None else None

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """Write the record with one conditional PutItem, at the version that was read of the same run."""
        written = replace(record, version=record.version + 1)
        item = {"pk": _key(record.cluster), **plain(written)}
        return written if self._table.put_version(item, version=record.version, same="number") else None


def _compressed(text: str) -> str:
    return b64encode(compress(text.encode())).decode()


def _expanded(text: str) -> bytes:
    return decompress(b64decode(text))


Item = dict[str, Any]


def upgrade_key(group: str) -> str:
    """Return `upgrade#GROUP`."""
    return f"{UPGRADE}#{group}"


def upgrade_item(record: UpgradeRecord) -> Item:
    """Return the item, without the key."""
    return _plain_fields(record)


def upgrade_of(item: Mapping[str, Any]) -> UpgradeRecord:
    """Return the record that an item holds."""
    record: UpgradeRecord = _record_of(UpgradeRecord, item)
    return record


def run_of(item: Mapping[str, Any]) -> DisruptionRecord:
    """Return the record of a disruption run that an item holds."""
    record: DisruptionRecord = _record_of(DisruptionRecord, item)
    return record


def _record_of(kind: Any, item: Mapping[str, Any]) -> Any:
    """Return the record. Raises NewerRecordError for a word that is not known here, or another shape: a step that
    guessed what it means would write the guess back.
    """
    try:
        return _built(kind, item)
    except MALFORMED as error:
        about = item.get("pk") or kind.__name__
        said = error if isinstance(error, ValueError) else repr(error)
        raise NewerRecordError(f"{about}: {said}; another version of Leeward may have written it") from error


def plain(value: Any) -> Any:
    """Convert a value to the table's types. Raises TypeError for values that records do not hold."""
    match value:
        case Enum():
            return value.value
        case bool() | int() | str():
            return value
        case float() | datetime():
            return repr(value) if isinstance(value, float) else format_instant(value)
        case Mapping():
            return {str(name): plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _ if is_dataclass(value):
            return _plain_fields(value)
        case _:
            raise TypeError(f"no place in an item for {type(value).__name__}")


def made(kind: Any, value: Any) -> Any:
    """Convert a value back to the type of a hint. Raises TypeError for hints that records do not have."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {Union, types.UnionType}:
        return made(next(one for one in inner if one is not type(None)), value)
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(made(one, part) for one, part in zip(kinds, value, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {name: made(inner[1], part) for name, part in value.items()}
    if kind is datetime:
        return parse_instant(value)
    if kind in {str, int, bool, float} or (isinstance(kind, type) and issubclass(kind, Enum)):
        return kind(value)
    if is_dataclass(kind) and isinstance(kind, type):
        return _built(kind, value)
    raise TypeError(f"no way back from an item to {kind}")


def _plain_fields(record: Any) -> Item:
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    return {name: plain(value) for name, value in values.items() if value is not None}


def _built(kind: Any, item: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    given = {name: made(hint, item[name]) for name, hint in hints.items() if item.get(name) is not None}
    for one in fields(kind):
        needed = one.default is MISSING and one.default_factory is MISSING
        if needed and one.name not in given and type(None) in get_args(hints[one.name]):
            given[one.name] = None
    return kind(**given)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    known = {one.name for one in fields(kind)}
    return {name: hint for name, hint in get_type_hints(kind).items() if name in known}


def _key(cluster: str) -> str:
    return f"{DISRUPTION}#{cluster}"
