"""Fields of JSON from other sources: the right type, or MalformedMessageError with the value found."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from leeward.errors import TerminalError
from leeward.model.times import as_instant, parse_instant

INSTANCE_ID = re.compile(r"i-[0-9a-f]{1,32}", re.ASCII)
RESERVATION_ID = re.compile(r"cr-[0-9a-f]{1,32}", re.ASCII)
SHOWN = 80  # characters of a wrong value that a reason repeats
MILLISECONDS = 100_000_000_000  # from here on a number since 1970 is in milliseconds
LONGEST = 4000  # characters of a text; the longest that AWS allows is a hook's NotificationMetadata


class MalformedMessageError(TerminalError):
    """Body that can never be parsed; the message says what was found and what was expected."""


def shown(value: object) -> str:
    """Return a wrong value as a reason shows it: cut short, escaped."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def text(raw: Mapping[str, Any], key: str) -> str:
    """Return a string that must be present and not empty."""
    value = raw.get(key)
    if not isinstance(value, str) or not value:
        raise MalformedMessageError(f"{key}: found {shown(value)}, expected a string")
    return _bounded(key, value)


def optional_text(raw: Mapping[str, Any], key: str) -> str:
    """Return a string, empty if it is absent or null."""
    value = raw.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedMessageError(f"{key}: found {shown(value)}, expected a string")
    return _bounded(key, value)


def _bounded(key: str, value: str) -> str:
    if len(value) > LONGEST:
        raise MalformedMessageError(f"{key}: found {len(value)} characters, expected at most {LONGEST}")
    return value


def mapping(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return an object that must be present."""
    value = raw.get(key)
    if not isinstance(value, dict):
        raise MalformedMessageError(f"{key}: found {shown(value)}, expected an object")
    return value


def instance_id(raw: Mapping[str, Any], key: str) -> str:
    """Return an instance id: `i-` and hexadecimal digits."""
    value = raw.get(key)
    if not isinstance(value, str) or not INSTANCE_ID.fullmatch(value):
        raise MalformedMessageError(f"{key}: found {shown(value)}, expected an instance id")
    return value


def reservation_id(raw: Mapping[str, Any], key: str) -> str:
    """Return a capacity reservation's id: `cr-` and hexadecimal digits."""
    value = raw.get(key)
    if not isinstance(value, str) or not RESERVATION_ID.fullmatch(value):
        raise MalformedMessageError(f"{key}: found {shown(value)}, expected a capacity reservation's id")
    return value


def moment(value: object) -> datetime | None:
    """Parse RFC 3339 or RFC 2822 (AWS Health's `Thu, 05 Mar 2026 10:00:00 GMT`); None for anything else.

    A time that cannot be parsed does not make an event worthless, so this never raises.
    """
    if not isinstance(value, str):
        return None
    for read in (parse_instant, _rfc_2822):
        try:
            return read(value)
        except (ValueError, OverflowError):
            continue
    return None


def any_moment(value: object) -> datetime | None:
    """Parse a time in any form that can be told: as `moment`, without a zone (UTC), or as seconds or milliseconds since
    1970. None for anything else, a date alone too: it says no time of the day.
    """
    if isinstance(value, str) and re.fullmatch(r"\d{9,13}(\.\d+)?", value.strip(), re.ASCII):
        value = float(value)
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value >= MILLISECONDS else value, UTC)
        if isinstance(value, str) and (found := moment(value.strip())):
            return found
        parsed = datetime.fromisoformat(value.strip()) if isinstance(value, str) and ":" in value else None
    except (ValueError, OverflowError, OSError):
        return None
    return parsed.replace(tzinfo=UTC) if parsed is not None and parsed.tzinfo is None else parsed


def later(at: datetime, span: timedelta) -> datetime | None:
    """Return `at + span`, or None if it overflows: an absurd date must not break the batch."""
    try:
        return at + span
    except OverflowError:
        return None


def _rfc_2822(value: str) -> datetime:
    parsed = parsedate_to_datetime(value)
    if parsed.tzinfo is None:  # "-0000" means UTC, local zone unknown
        return parse_instant(parsed.isoformat() + "Z")
    return as_instant(parsed)
