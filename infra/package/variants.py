"""Merge of syntheses that differ in one optional setting each into one tree with `Fn::If`.

The syntheses are compared as data: a value that a setting adds, removes or changes becomes conditional, wherever the
CDK code has put it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

NO_VALUE = {"Ref": "AWS::NoValue"}
ABSENT = object()

Variant = tuple[str, Any]
"""Condition, and the value where it is true."""


class MergeConflictError(ValueError):
    """Error: two settings change one value in ways that a single template cannot express."""


def merge(base: Any, variants: Sequence[Variant]) -> Any:
    """Return a value that is `base`, and under each condition what its variant says. Raises MergeConflictError."""
    changed = [(condition, value) for condition, value in variants if value != base]
    if not changed:
        return base
    values = [base, *(value for _, value in changed)]
    if all(isinstance(value, Mapping) and not is_intrinsic(value) for value in values):
        return _merge_mappings(base, changed)
    if all(isinstance(value, list) for value in values):
        return _merge_lists(base, changed)
    if len(changed) > 1:
        raise MergeConflictError(f"{' and '.join(name for name, _ in changed)} both change {str(base)[:200]}")
    condition, value = changed[0]
    return if_(condition, value, base)


def merge_resources(base: Mapping[str, Any], variants: Sequence[Variant]) -> dict[str, Any]:
    """Return all resources. One that only a variant has carries its condition; Raises MergeConflictError."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for value in (base, *(value for _, value in variants)) for name in value):
        having = [(condition, value[name]) for condition, value in variants if name in value]
        if name in base:
            if len(having) < len(variants):
                raise MergeConflictError(f"a setting removes {name}; let the synthesis without it be the base")
            merged[name] = merge(base[name], having)
        elif len(having) > 1:
            raise MergeConflictError(f"{' and '.join(condition for condition, _ in having)} both add {name}")
        else:
            condition, resource = having[0]
            merged[name] = {**resource, "Condition": condition}
    return merged


def is_intrinsic(value: Any) -> bool:
    """Return whether a mapping is a call of an intrinsic function."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    name = str(next(iter(value)))
    return name == "Ref" or name.startswith("Fn::")


def if_(condition: str, value: Any, otherwise: Any = ABSENT) -> dict[str, Any]:
    """Return `Fn::If`; what is absent is removed by CloudFormation."""
    taken = [NO_VALUE if each is ABSENT else each for each in (value, otherwise)]
    return {"Fn::If": [condition, *taken]}


def _merge_mappings(base: Mapping[str, Any], variants: Sequence[Variant]) -> dict[str, Any]:
    keys = dict.fromkeys(key for value in (base, *(value for _, value in variants)) for key in value)
    return {
        key: merge(base.get(key, ABSENT), [(condition, value.get(key, ABSENT)) for condition, value in variants])
        for key in keys
    }


def _merge_lists(base: Sequence[Any], variants: Sequence[Variant]) -> list[Any]:
    """Return the items of the base with those that variants insert, remove or change."""
    inserted: dict[int, list[Any]] = {}
    changed: dict[int, list[Variant]] = {}
    for condition, value in variants:
        for place, items, replaced in _edits(base, value):
            inserted.setdefault(place, []).extend(if_(condition, item) for item in items)
            for offset, item in enumerate(replaced):
                changed.setdefault(place + offset, []).append((condition, item))
    merged: list[Any] = []
    for place in range(len(base) + 1):
        merged += inserted.get(place, [])
        if place < len(base):
            merged.append(merge(base[place], changed.get(place, [])))
    return merged


def _edits(base: Sequence[Any], value: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any], Sequence[Any]]]:
    """Return (place in base, items to insert before it, what the items from there on become)."""
    matcher = SequenceMatcher(None, [_identity(item) for item in base], [_identity(item) for item in value], False)
    for kind, start, end, from_, to in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and end - start == to - from_):
            yield start, [], value[from_:to]
        else:
            yield start, value[from_:to], [ABSENT] * (end - start)


def _identity(item: Any) -> str:
    """Return what an item is recognized by in another list: a statement's id, else all of it."""
    sid = item.get("Sid") if isinstance(item, Mapping) else None
    return str(sid) if sid else json.dumps(item, sort_keys=True)
