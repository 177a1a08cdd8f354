"""Error of an object that cannot be read: one sentence that names the object."""

from collections.abc import Mapping
from typing import Any

from leeward.errors import InvalidInputError

UNREADABLE = (InvalidInputError, KeyError, TypeError, ValueError, AttributeError)  # errors of reading malformed JSON


def malformed(kind: str, raw: Any, error: Exception) -> InvalidInputError:
    """Return the error to raise instead: `pod shop/web-1: topologyKey is missing`."""
    match error:
        case InvalidInputError():
            what = str(error)
        case KeyError(args=(name,)):
            what = f"{name} is missing"
        case _:
            what = f"found something else than its schema allows ({error})"
    return InvalidInputError(f"{kind} {_name(raw)}: {what}")


def _name(raw: Any) -> str:
    meta = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(meta, Mapping):
        return "without metadata"
    return "/".join(str(meta[key]) for key in ("namespace", "name") if key in meta) or "without a name"
