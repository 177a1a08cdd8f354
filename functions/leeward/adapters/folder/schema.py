"""Check of JSON that tools printed or people wrote against `schema.json`, before the models read it.

Decides the sentence for the first wrong value, so that a broken file never ends in a traceback; jsonschema-rs evaluates
the schema, in 8 µs for a pod. Of the other libraries, jsonschema takes 1.1 ms, a minute for 60,000, and fastjsonschema
compiles for 0.1 s at each start."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Registry, ValidationError, ValidationErrorKind, validator_for

from leeward.errors import InvalidInputError
from leeward.model.quantity import amount
from leeward.model.times import parse_instant
from leeward.policy.fields import shown

Check = Callable[[Any, str], None]
SCHEMA = Path(__file__).with_name("schema.json")
_URI = "urn:leeward:schema"
_INDEX = re.compile(r"\+?[0-9]{1,20}")
_CONTAINERS = {"object": "a mapping", "array": "a list"}


class SchemaError(Exception):
    """Error for a value that the schema forbids; `path` inside the file, `found` and `expected` as people read them."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(f"{path or 'document'}: found {found}, expected {expected}")


@cache
def check_of(name: str) -> Check:
    """Return the check of a definition of the schema. It raises SchemaError for the first value that is wrong."""
    validator = validator_for(
        {"$ref": f"{_URI}#/$defs/{name}"}, registry=_registry(), formats=FORMATS, validate_formats=True
    )

    def check(value: Any, path: str) -> None:
        try:
            validator.validate(value)
        except ValidationError as error:
            raise _worded(error, value, path) from None
        except UnicodeEncodeError:
            raise SchemaError(path, "half of a surrogate pair", "text") from None
        except ValueError:  # jsonschema-rs follows 255 levels
            raise SchemaError(path, "nesting out of all proportion", "what the tool prints") from None

    return check


def definition(name: str) -> Mapping[str, Any]:
    """Return a definition of the schema: of an element of the file NAME.json, or of a part that several share."""
    found: Mapping[str, Any] = _document()["$defs"][name]
    return found


def inside(path: str, key: str) -> str:
    """Return the path of a key: `items[0].metadata.labels["k8s.io/x"]`."""
    if key.replace("-", "_").isidentifier():
        return f"{path}.{key}" if path else key
    return f'{path}["{key}"]'


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return document


@cache
def _registry() -> Registry:
    """Return the schema as validators share it: each compiles only the definitions that it refers to."""
    return Registry([(_URI, _document())])


def _worded(error: ValidationError, value: Any, path: str) -> SchemaError:
    value, path = _followed(error.instance_path, value, path)
    match error.kind:
        case ValidationErrorKind.Required(key):
            return SchemaError(inside(path, key), "nothing", "a value")
        case ValidationErrorKind.Enum(words):
            return SchemaError(path, shown(value), f"{'one of ' * (len(words) > 1)}{', '.join(map(str, words))}")
        case ValidationErrorKind.MinItems(least):
            return SchemaError(path, "an empty list", f"at least {'one' if least == 1 else least}")
    return SchemaError(path, shown(value), _expected(error.schema_path))


def _followed(steps: Sequence[str | int], value: Any, path: str) -> tuple[Any, str]:
    """Return the value that the steps lead to, and its path. In jsonschema-rs' steps an empty key is missing, and a key
    such as `01` is the number 1; where they lead nowhere, the last mapping is the place.
    """
    for step in steps:
        if isinstance(value, list) and isinstance(step, int):
            value, path = value[step], f"{path}[{step}]"
            continue
        while isinstance(value, Mapping) and _key(value, step) is None and "" in value:
            value, path = value[""], inside(path, "")
        key = _key(value, step) if isinstance(value, Mapping) else None
        if key is None:
            break
        value, path = value[key], inside(path, key)
    return value, path


def _key(value: Mapping[str, Any], step: str | int) -> str | None:
    if isinstance(step, str):
        return step if step in value else None
    return next((key for key in value if _INDEX.fullmatch(key) and int(key) == step), None)


def _expected(keyword: Sequence[str | int]) -> str:
    """Return the description beside a keyword; lists and mappings have none."""
    schema: Any = _document()
    for step in keyword[:-1]:
        schema = schema[step]
    return schema["description"] if "description" in schema else _CONTAINERS[schema["type"]]


def _is_instant(value: str) -> bool:
    try:
        parse_instant(value)
    except (ValueError, OverflowError):
        return False
    return True


def _is_quantity(value: str) -> bool:
    try:
        amount("", value)
    except InvalidInputError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {"instant": _is_instant, "quantity": _is_quantity}
