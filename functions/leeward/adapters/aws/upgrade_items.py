"""Records of upgrades as DynamoDB items and back, field by field from their types: no calls, no list of fields.

Strings, numbers (fractions as texts, digit by digit), booleans, instants, enums, tuples, mappings by string and
dataclasses of those. None and fields that an item does not have (an older version wrote it) take the field's default.
Names stay as the record has them."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from leeward.model.times import format_instant, parse_instant
from leeward.upgrade.record import UpgradeRecord

UPGRADE = "upgrade"  # first part of a record's key

Item = dict[str, Any]


def upgrade_key(group: str) -> str:
    """Return `upgrade#GROUP`."""
    return f"{UPGRADE}#{group}"


def upgrade_item(record: UpgradeRecord) -> Item:
    """Return the item, without the key."""
    return _plain_fields(record)


def upgrade_of(item: Mapping[str, Any]) -> UpgradeRecord:
    """Return the record that an item holds."""
    record: UpgradeRecord = _built(UpgradeRecord, item)
    return record


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
