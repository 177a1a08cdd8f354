"""Kubernetes' times: RFC 3339 in UTC. Inside the model a moment is a float of seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(seconds: float) -> str:
    """Return whole seconds, as metav1.Time is written."""
    return _written(int(seconds))


@lru_cache(maxsize=256)  # a controller that writes many objects writes them in the same second
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(seconds: float) -> str:
    """Return microseconds, as metav1.MicroTime (leases) is written; the record of facts uses it as well."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parsed(text: str) -> float:
    """Return seconds since 1970. Raises ValueError for a text that is not RFC 3339."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def short_age(seconds: float) -> str:
    """Return an age as kubectl prints it: `45s`, `3m20s`, `15m`, `5h10m`, `26h`, `3d4h`, `40d` (HumanDuration)."""
    total = max(0, int(seconds))
    minutes, hours, days = total // 60, total // 3600, total // 86400
    steps = (
        (total < 120, f"{total}s"),
        (minutes < 10, _pair(minutes, "m", total % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _pair(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (days < 8, _pair(days, "d", hours % 24, "h")),
    )
    return next((text for fits, text in steps if fits), f"{days}d")


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
