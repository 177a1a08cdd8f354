"""Durations as Kubernetes and Go write them: `15m`, `1h30m`, `60s`, `1.5h`, `500ms`.

Decides the syntax of a duration; ranges and the word `Never` belong to the keys that use it."""

import re
from datetime import timedelta
from fractions import Fraction

LONGEST = timedelta(hours=2_540_400)  # 290 years, what Go's time.Duration holds
_MICROSECONDS = {"us": 1, "µs": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
_NUMBER = r"\d{1,20}(?:\.\d{0,20})?"
_WHOLE = re.compile(rf"(?:{_NUMBER}(?:h|ms|m|us|µs|s))+", re.ASCII)
_PART = re.compile(rf"({_NUMBER})(h|ms|m|us|µs|s)", re.ASCII)
_SPREAD = re.compile(r"([^ ±+]+) ?(?:±|\+-) ?(\d{1,2})%", re.ASCII)
WIDEST_SPREAD = 50  # percent


def parse_duration(text: object) -> timedelta:
    """Parse as Go's time.ParseDuration without signs, down to microseconds. Raises ValueError, also past 290 years."""
    if not isinstance(text, str):
        raise ValueError("not text")
    if text == "0":
        return timedelta()
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a duration")
    total = sum(Fraction(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(text))
    if total.denominator != 1 or total > LONGEST // timedelta(microseconds=1):
        raise ValueError("out of range")
    return timedelta(microseconds=int(total))


def parse_spread(text: object) -> tuple[timedelta, int]:
    """Parse `720h±10%`, `720h+-10%` or a plain duration as (duration, percent). Raises ValueError."""
    match = _SPREAD.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return parse_duration(text), 0
    percent = int(match[2])
    if not 1 <= percent <= WIDEST_SPREAD:
        raise ValueError("out of range")
    return parse_duration(match[1]), percent


def format_spread(duration: timedelta, percent: int) -> str:
    """Return the spelling that `parse_spread` reads back, in ASCII: the document is stored through CloudFormation."""
    return format_duration(duration) + (f"+-{percent}%" if percent else "")


def format_duration(duration: timedelta) -> str:
    """Return the shortest spelling in hours, minutes and seconds that `parse_duration` reads back exactly: `1h30m`."""
    micros = duration // timedelta(microseconds=1)
    minutes, micros = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds, micros = divmod(micros, 1_000_000)
    second_part = f"{seconds}.{micros:06d}".rstrip("0") if micros else str(seconds)
    parts = ((hours, f"{hours}h"), (minutes, f"{minutes}m"), (seconds or micros, f"{second_part}s"))
    return "".join(text for amount, text in parts if amount) or "0s"
