"""JSON texts whose items, keys and values CloudFormation fills in: the arguments of a join with an empty delimiter."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from infra.package.parameters import SLOTS, follows, has
from infra.package.variants import NO_VALUE, is_intrinsic

Part = str | Mapping[str, Any]
Parts = Callable[[Any], list[Part]]
"""Function that splits a text at its markers."""


def text(value: Any, parts: Parts, *, quoted: bool = True) -> list[Part]:
    """Return the JSON text of a value as parts. `quoted` false: items that are functions are JSON already."""
    return list(_text(value, parts, quoted))


def joined(parts: Sequence[Part]) -> Any:
    """Return parts as one value: neighbouring texts become one, a single part stands alone."""
    merged: list[Part] = []
    for part in _flat(parts):
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    if not merged:
        return ""
    return merged[0] if len(merged) == 1 else {"Fn::Join": ["", merged]}


def _flat(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        match part:
            case {"Fn::Join": ["", [*inner]]}:
                yield from _flat(inner)
            case _:
                yield part


def _text(value: Any, parts: Parts, quoted: bool) -> Iterator[Part]:
    if is_intrinsic(value):
        inner = parts(value)
        yield from (['"', *inner, '"'] if quoted else inner)
    elif isinstance(value, Mapping):
        yield "{"
        for number, (key, item) in enumerate(value.items()):
            yield "," if number else ""
            yield from _text(key, parts, quoted)
            yield ":"
            yield from _text(item, parts, quoted)
        yield "}"
    elif isinstance(value, list):
        yield "["
        yield from _items(value, parts, quoted)
        yield "]"
    elif isinstance(value, str):
        yield from parts(json.dumps(value))
    else:
        yield json.dumps(value)


def _items(items: Sequence[Any], parts: Parts, quoted: bool) -> Iterator[Part]:
    """Yield items and their commas. An item of a cluster may be missing: its comma is in its own condition, behind it
    where an item follows that is always there, else before it where another cluster precedes.
    """
    cut = [_conditional(item) for item in items]
    always = next((place for place, (condition, _) in enumerate(cut) if not condition), None)
    for place, (condition, item) in enumerate(cut):
        inner = list(_text(item, parts, quoted))
        if always is not None:
            inner = [*inner, ","] if place < always else [",", *inner] if place > always else inner
        elif condition != has(SLOTS[0]):
            slot = next(slot for slot in SLOTS if has(slot) == condition)
            inner = [{"Fn::If": [follows(slot), ",", ""]}, *inner]
        if condition:
            yield {"Fn::If": [condition, joined(inner), ""]}
        else:
            yield from inner


def _conditional(item: Any) -> tuple[str, Any]:
    """Return (condition, item): that of an `Fn::If` without an alternative, or of the one cluster in the item."""
    match item:
        case {"Fn::If": [str(condition), value, absent]} if absent == NO_VALUE:
            return condition, value
    written = json.dumps(item)
    named = [slot for slot in SLOTS if slot in written]
    return (has(named[0]), item) if len(named) == 1 else ("", item)
