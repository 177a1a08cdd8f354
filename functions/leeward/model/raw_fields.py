"""Fields of raw Kubernetes objects. A field of another type than its schema allows counts as absent.

An API server writes null for empty lists, mappings and instants, and a list of one cluster holds the objects of all its
authors: an object with a strange field must not keep the others from being read. Its name alone is required. Whole
numbers in text are read as Kubernetes' Go code reads them."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from leeward.errors import InvalidInputError
from leeward.model.times import parse_instant
from leeward.model.visible import visible

_WHOLE_NUMBER = re.compile(r"[+-]?0*([0-9]{1,19})")
LEAST, GREATEST = -(2**63), 2**63 - 1
_TEXT = {str}


def parse_int(text: str) -> int | None:
    """Return the number as strconv.ParseInt(text, 10, 64) reads it: a sign, ASCII digits, 64 bits; None for every
    other text, also for blanks, `1_000` and digits of other scripts, which Python's `int` takes.
    """
    found = _WHOLE_NUMBER.fullmatch(text)
    if found is None:
        return None
    value = -int(found[1]) if text[0] == "-" else int(found[1])
    return value if LEAST <= value <= GREATEST else None


def metadata_of(raw: Any, kind: str) -> Mapping[str, Any]:
    """Return the object's metadata. Raises InvalidInputError for an object without a name."""
    meta = mapping(mapping(raw).get("metadata"))
    if not text(meta.get("name")):
        namespace = visible(text(meta.get("namespace")))
        where = f" in namespace {namespace}" if namespace else ""
        raise InvalidInputError(f"{kind}{where}: metadata.name: found no text, expected a name")
    return meta


def text(value: Any, default: str = "") -> str:
    """Return a text that is not empty, else the default."""
    return value if value and isinstance(value, str) else default


def number(value: Any, default: int = 0) -> int:
    """Return a whole number of 64 bits, also one written as text, else the default."""
    if isinstance(value, str):
        found = parse_int(value)
        return default if found is None else found
    return value if isinstance(value, int) and LEAST <= value <= GREATEST else default


def instant(value: Any) -> datetime | None:
    """Return an instant, None where there is none."""
    if not value or not isinstance(value, str):
        return None
    try:
        return parse_instant(value)
    except (ValueError, OverflowError):
        return None


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def texts(value: Any) -> Mapping[str, str]:
    """Return the texts of a mapping of texts: labels, annotations, selectors."""
    if not value or not isinstance(value, dict):
        return {}
    if _TEXT.issuperset(map(type, value.values())):
        return value
    return {key: one for key, one in value.items() if isinstance(one, str)}


def mappings(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the mappings of a list of mappings."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list | tuple) else ()


def listed(value: Any) -> tuple[str, ...]:
    """Return the texts of a list of texts."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list | tuple) else ()
