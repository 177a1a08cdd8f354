"""Dataclasses as items of the table or JSON documents, and back, by their fields and type hints.

An attribute is the field's name in camelCase, unless its metadata is that of `named`. It is left out where the field is
None or has its default, so that an absent attribute stands for either; an unknown one is ignored, because a newer
version may have written it. Values are texts, whole numbers, booleans, lists and maps; a float is its text. The
converters of a class are made at its first use and kept: an import does not pay for them, and a thousand records pay
once.

cattrs, mashumaro and msgspec write and compile code for each class, or are not pure Python; dacite only reads."""

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from leeward.errors import NewerRecordError
from leeward.model.times import format_instant, parse_instant

MALFORMED = (AttributeError, KeyError, TypeError, ValueError)  # of an item in another shape than expected
FOREVER = -1  # seconds of `timedelta.max`
NAME = "name"  # key of a field's metadata
APART: Mapping[str, str | None] = {NAME: None}  # metadata of a field that is not stored, or by its owner's adapter

T = TypeVar("T")
Convert = Callable[[Any], Any]


def named(name: str) -> Mapping[str, str | None]:
    """Return the metadata of a field that is stored under this name."""
    return {NAME: name}


def encode(value: Any) -> dict[str, Any]:
    """Return the attributes of a dataclass."""
    kind: Any = type(value)
    item: dict[str, Any] = _shape(kind).write(value)
    return item


def decode(kind: Callable[..., T], raw: Mapping[str, Any], **given: Any) -> T:
    """Return the dataclass that `encode` wrote; `given`: fields that come from elsewhere. Raises one of MALFORMED."""
    found: T = _shape(kind).read(raw, **given)
    return found


def decode_item(item: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]) -> T:
    """Return what `read` makes of an item. Raises NewerRecordError for a word that is not known here, or another shape:
    a step that guessed what it means would write the guess back.
    """
    try:
        return read(item)
    except MALFORMED as error:
        said = error if isinstance(error, ValueError) else repr(error)
        raise NewerRecordError(f"{item.get('pk')}: {said}; another version of Leeward may have written it") from error


class _Shape(NamedTuple):
    write: Convert
    read: Callable[..., Any]


@cache
def _shape(kind: Any) -> _Shape:
    """Return the converters of a dataclass. Raises TypeError for a hint that has no place in an item."""
    hints = get_type_hints(kind)
    stored = [(each, each.metadata.get(NAME, _camel_case(each.name))) for each in fields(kind)]
    rows = [(each, name, _converters(hints[each.name])) for each, name in stored if name is not None]
    writes = [(each.name, name, both.write, _default(each)) for each, name, both in rows]
    reads = {name: (each.name, both.read) for each, name, both in rows}
    empty = [each.name for each, _, _ in rows if _default(each) is MISSING and type(None) in get_args(hints[each.name])]

    def write(value: Any) -> dict[str, Any]:
        item = {}
        for place, name, convert, default in writes:
            part = getattr(value, place)
            if part is not None and part != default:
                item[name] = convert(part)
        return item

    def read(raw: Mapping[str, Any], **given: Any) -> Any:
        found = dict.fromkeys(empty)
        for name, value in raw.items():
            if value is not None and name in reads:
                place, convert = reads[name]
                found[place] = convert(value)
        return kind(**{**found, **given})

    return _Shape(write, read)


def _converters(hint: Any) -> _Shape:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if origin in {Union, types.UnionType} and len(inner) == 2 and inner[1] is type(None):
        return _converters(inner[0])
    if origin is tuple and inner[-1] is not Ellipsis:
        parts = [_converters(each) for each in inner]
        return _Shape(
            lambda value: [part.write(each) for part, each in zip(parts, value, strict=True)],
            lambda raw: tuple(part.read(each) for part, each in zip(parts, raw, strict=True)),
        )
    if origin in {tuple, list, frozenset}:
        one, ordered = _converters(inner[0]), sorted if origin is frozenset else list
        write = ordered if one.write is _same else lambda value: list(map(one.write, ordered(value)))
        return _Shape(write, lambda raw: origin(map(one.read, raw)))
    if isinstance(origin, type) and issubclass(origin, Mapping) and inner[0] is str:
        by_name = _converters(inner[1])
        return _Shape(
            lambda value: {name: by_name.write(part) for name, part in value.items()},
            lambda raw: {name: by_name.read(part) for name, part in raw.items()},
        )
    return _of_class(hint)


def _of_class(hint: Any) -> _Shape:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _Shape(attrgetter("value"), hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return _shape(hint)
    raise TypeError(f"no place in an item for {hint}")


def _default(each: "Field[Any]") -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _camel_case(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def _same(value: Any) -> Any:
    return value


_SIMPLE: Mapping[Any, _Shape] = {
    Any: _Shape(_same, _same),
    str: _Shape(_same, str),
    int: _Shape(_same, int),
    bool: _Shape(_same, bool),
    float: _Shape(repr, float),
    datetime: _Shape(format_instant, parse_instant),
    timedelta: _Shape(
        lambda span: FOREVER if span == timedelta.max else int(span.total_seconds()),
        lambda seconds: timedelta.max if seconds == FOREVER else timedelta(seconds=int(seconds)),
    ),
}
