"""Check of JSON that tools printed or people wrote against `schema.json`, before the models read it.

Decides only types, so that a broken file ends in one sentence with its path and never in a traceback. It evaluates the
keywords of JSON Schema that the file uses. Libraries were measured: jsonschema takes 230 µs for a pod, 14 s for 60,000,
where this takes 20 µs; fastjsonschema compiles for 0.1 s at each start, and joins keys to paths that are ambiguous. The
tests hold this against jsonschema."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.quantity import amount
from leeward.model.times import parse_instant
from leeward.policy.fields import shown

Check = Callable[[Any, str], None]
SCHEMA = Path(__file__).with_name("schema.json")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class SchemaError(Exception):
    """Error for a value that the schema forbids; `path` inside the file, `found` and `expected` as people read them."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(f"{path or 'document'}: found {found}, expected {expected}")


@cache
def check_of(name: str) -> Check:
    """Return the check of a definition of the schema. It raises SchemaError for the first value that is wrong."""
    return _compiled(_definitions()[name])


def inside(path: str, key: str) -> str:
    """Return the path of a key: `items[0].metadata.labels["k8s.io/x"]`."""
    if key.replace("-", "_").isidentifier():
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


@cache
def _definitions() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    return found


def _compiled(schema: Mapping[str, Any]) -> Check:
    if "$ref" in schema:
        return check_of(schema["$ref"].removeprefix("#/$defs/"))
    if "anyOf" in schema:
        return _any_of([_compiled(one) for one in schema["anyOf"]], schema["description"])
    if "enum" in schema:
        return _enum(schema["enum"])
    if schema["type"] == "object":
        return _object(schema)
    if schema["type"] == "array":
        return _array(_compiled(schema["items"]), schema.get("minItems", 0))
    return _scalar(schema)


def _any_of(checks: Sequence[Check], expected: str) -> Check:
    def check(value: Any, path: str) -> None:
        for one in checks:
            try:
                return one(value, path)
            except SchemaError:
                continue
        raise SchemaError(path, shown(value), expected)

    return check


def _enum(words: Sequence[str]) -> Check:
    def check(value: Any, path: str) -> None:
        if value not in words:
            raise SchemaError(path, shown(value), f"one of {', '.join(words)}" if len(words) > 1 else words[0])

    return check


def _object(schema: Mapping[str, Any]) -> Check:
    needed: Sequence[str] = schema.get("required", ())
    known = {key: _compiled(one) for key, one in schema.get("properties", {}).items()}
    others = _compiled(schema["additionalProperties"]) if "additionalProperties" in schema else None

    def check(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise SchemaError(path, shown(value), "a mapping")
        for key in needed:
            if key not in value:
                raise SchemaError(inside(path, key), "nothing", "a value")
        for key, one in known.items():
            if key in value:
                one(value[key], inside(path, key))
        if others is not None:
            for key, item in value.items():
                others(item, inside(path, key))

    return check


def _array(of_item: Check, least: int) -> Check:
    def check(value: Any, path: str) -> None:
        if not isinstance(value, list):
            raise SchemaError(path, shown(value), "a list")
        if len(value) < least:
            raise SchemaError(path, "an empty list", f"at least {'one' if least == 1 else least}")
        for index, item in enumerate(value):
            of_item(item, f"{path}[{index}]")

    return check


def _scalar(schema: Mapping[str, Any]) -> Check:
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    types = tuple(kind for name in names for kind in _TYPES[name])
    rules = [_RULES[key](schema[key]) for key in schema if key in _RULES]
    no_bool, expected = bool not in types, schema["description"]

    def check(value: Any, path: str) -> None:
        if not isinstance(value, types) or (no_bool and isinstance(value, bool)):
            raise SchemaError(path, shown(value), expected)
        for rule in rules:
            if not rule(value):
                raise SchemaError(path, shown(value), expected)

    return check


def _is_instant(value: Any) -> bool:
    try:
        parse_instant(value)
    except (ValueError, OverflowError):
        return False
    return True


def _is_quantity(value: Any) -> bool:
    try:
        amount("", value)
    except InvalidInputError:
        return False
    return True


FORMATS: Mapping[str, Callable[[Any], bool]] = {"instant": _is_instant, "quantity": _is_quantity}
_RULES: Mapping[str, Callable[[Any], Callable[[Any], bool]]] = {
    "minLength": lambda least: lambda value: len(value) >= least,
    "minimum": lambda least: lambda value: value >= least,
    "maximum": lambda most: lambda value: value <= most,
    "pattern": lambda pattern: lambda value: re.fullmatch(pattern, value) is not None,
    "format": lambda name: FORMATS[name],
}
