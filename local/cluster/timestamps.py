"""Kubernetes' times: RFC 3339 in UTC. Inside the model a moment is a float of seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(seconds: float) -> str:
    """Format a time as metav1.Time does: `2026-03-05T10:00:00Z`, the fraction cut off."""
    return _written(int(seconds))


@lru_cache(maxsize=256)  # many objects are written in the same second
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """Format a time as metav1.MicroTime does (leases): `2026-03-05T10:00:00.000000Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed(text: str) -> float:
    """Return the seconds since 1970 of an RFC 3339 time. Raises ValueError for other texts, such as a date alone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:  # Python would take it for the machine's local time
        raise ValueError(f"{text!r} has no time zone")
    return moment.timestamp()


def short_age(seconds: float) -> str:
    """Format an age as kubectl does: `45s`, `3m20s`, `15m`, `5h10m`, `26h`, `3d4h`, `40d`, `2y35d`, `9y`; a negative
    one is `0s`.

    Rule: apimachinery `duration.HumanDuration`, except that kubectl prints `<invalid>` for a time in the future.
    """
    total = max(0, int(seconds))
    minutes, hours, days = total // 60, total // 3600, total // 86400
    years = days // 365
    steps = (
        (total < 120, f"{total}s"),
        (minutes < 10, _pair(minutes, "m", total % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _pair(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (days < 8, _pair(days, "d", hours % 24, "h")),
        (years < 2, f"{days}d"),
        (years < 8, _pair(years, "y", days % 365, "d")),
    )
    return next((text for fits, text in steps if fits), f"{years}y")


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
