"""Recurring windows: cron lines, held against a search minute by minute, durations against exact fractions, zones."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

from fuzz.mutations import ODD_TEXTS, mutated_text
from fuzz.reduction import smaller_json
from fuzz.target import Disagreement, Target
from leeward.policy.document import Window
from leeward.policy.durations import LONGEST, format_duration, parse_duration
from leeward.policy.schedule import MACROS, is_active, parse_schedule, zone

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
ZONES = (
    "UTC",
    "UTC",
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Cairo",
)
UNITS = ("h", "m", "s", "ms", "us", "µs")
_SIMPLE = re.compile(r"[0-9*,/-]+( [0-9*,/-]+){4}")
_UNIT = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1, "µs": 1}
_LONGEST_SEARCH = timedelta(hours=2)


class Windows(Target[dict[str, Any]]):
    """Cron line, duration and time zone of a window, and the moments at which it is asked."""

    name = "windows"
    goal = 700_000
    short = 4_000

    def generate(self, chance: Random) -> dict[str, Any]:
        """Return a window that is mostly valid, and three moments near a change of clocks or anywhere."""
        return {
            "schedule": _schedule(chance),
            "duration": _duration(chance),
            "zone": chance.choice(ZONES) if chance.random() < 0.9 else mutated_text(chance, chance.choice(ZONES)),
            "at": [_moment(chance) for _ in range(3)],
        }

    def check(self, value: dict[str, Any]) -> None:
        """Read the three parts; where all are valid, ask whether the window is open."""
        line = _read_line(value["schedule"])
        duration = _read_duration(value["duration"])
        known = _read_zone(value["zone"])
        if line is None or duration is None or not known or not duration:
            return
        window = Window(schedule=line, duration=duration, time_zone=value["zone"])
        for seconds in value["at"]:
            now = datetime.fromtimestamp(seconds, UTC)
            found = is_active(window, now)
            simple = MACROS.get(line, line)
            if value["zone"] == "UTC" and _SIMPLE.fullmatch(simple) and duration <= _LONGEST_SEARCH:
                want = _searched(simple, duration, now)
                if want is not None and found != want:
                    raise Disagreement(f"window: found {found}, expected {want} at {now} for {line} and {duration}")

    def smaller(self, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield windows with a shorter part."""
        return (one for one in smaller_json(value) if isinstance(one, dict) and one.keys() == value.keys())


def _read_line(text: Any) -> str | None:
    try:
        line = parse_schedule(text)
    except ValueError:
        return None
    if parse_schedule(line) != line:
        raise Disagreement(f"schedule: found {parse_schedule(line)!r}, expected {line!r} once more")
    return line


def _read_zone(name: str) -> bool:
    try:
        zone(name)
    except ValueError:
        return False
    return True


def _read_duration(text: str) -> timedelta | None:
    want = _exact(text)
    try:
        found = parse_duration(text)
    except ValueError:
        found = None
    if found != want:
        raise Disagreement(f"duration: found {found}, expected {want} for {text[:100]!r}")
    if found is not None and parse_duration(format_duration(found)) != found:
        raise Disagreement(f"spelling: found {format_duration(found)!r}, expected one of {found}")
    return found


def _exact(text: str) -> timedelta | None:
    """Return the duration as time.ParseDuration documents it, in whole microseconds."""
    if text == "0":
        return timedelta()
    total, rest = Fraction(0), text
    while rest:
        part = re.match(r"([0-9]{1,20})(\.[0-9]{0,20})?(h|ms|µs|us|m|s)", rest)
        if part is None:
            return None
        whole, fraction, unit = part.groups(default="")
        digits = fraction.removeprefix(".")
        total += (int(whole) + Fraction(int(digits or "0"), 10 ** len(digits))) * _UNIT[unit]
        rest = rest[part.end() :]
    if not text or total.denominator != 1 or total > LONGEST // timedelta(microseconds=1):
        return None
    return timedelta(microseconds=int(total))


def _searched(line: str, duration: timedelta, now: datetime) -> bool | None:
    """Return whether a start lies in (now - duration, now], by looking at every minute; None for a line that crontab(5)
    does not define.
    """
    fields = line.split(" ")
    sets = [_members(text, low, high) for text, (low, high) in zip(fields, RANGES, strict=True)]
    if any(members is None for members in sets):
        return None
    minutes, hours, days, months, weekdays = (members or set() for members in sets)
    together = fields[2].startswith("*") or fields[4].startswith("*")
    start = now.replace(second=0, microsecond=0)
    while now - duration < start:
        day, weekday = start.day in days, bool({start.isoweekday() % 7, start.isoweekday()} & weekdays)
        right_day = (day and weekday) if together else (day or weekday)
        if start.minute in minutes and start.hour in hours and start.month in months and right_day:
            return True
        start -= timedelta(minutes=1)
    return False


def _members(text: str, low: int, high: int) -> set[int] | None:
    found: set[int] = set()
    for term in text.split(","):
        part = re.fullmatch(r"(\*|([0-9]{1,3})(?:-([0-9]{1,3}))?)(?:/([0-9]{1,3}))?", term)
        if part is None:
            return None
        first = low if part[2] is None else int(part[2])
        last = high if part[2] is None else int(part[3] or (high if part[4] else first))
        found |= set(range(first, last + 1, int(part[4] or 1)))
    return found


def _schedule(chance: Random) -> str:
    match chance.randrange(12):
        case 0:
            return chance.choice(list(MACROS))
        case 1:
            return chance.choice(("0 0 L * *", "0 0 LW * *", "0 9 * * mon#1", "0 9 * * 5L", "? ? ? ? ?", "0 0 29 2 *"))
        case 2 | 3:
            return mutated_text(chance, _line(chance), (*MACROS, *MONTHS, *DAYS))
        case 4:
            return chance.choice(ODD_TEXTS)
    return _line(chance)


def _line(chance: Random) -> str:
    fields = [_field(chance, low, high) for low, high in RANGES]
    if chance.random() < 0.2:
        fields[3] = chance.choice(MONTHS)
    if chance.random() < 0.3:
        fields[4] = f"{chance.choice(DAYS)}-{chance.choice(DAYS)}"
    return chance.choice((" ", " ", " ", "  ", "\t")).join(fields)


def _field(chance: Random, low: int, high: int) -> str:
    def number() -> int:
        return chance.randint(low, high) if chance.random() < 0.97 else chance.choice((-1, 99, 60))

    match chance.randrange(8):
        case 0 | 1 | 2:
            return "*"
        case 3:
            return f"*/{chance.choice((1, 2, 5, 7, 15, 0, 90))}"
        case 4:
            first, last = sorted((number(), number()))
            return f"{first}-{last}" + (f"/{chance.randint(1, 9)}" if chance.random() < 0.3 else "")
        case 5:
            return ",".join(str(number()) for _ in range(chance.choice((2, 3, 6))))
        case 6:
            return f"{number()}/{chance.randint(1, 20)}"
    return str(number())


def _duration(chance: Random) -> str:
    text = "".join(_part(chance) for _ in range(chance.choice((1, 1, 2, 3))))
    return text if chance.random() < 0.8 else mutated_text(chance, text)


def _part(chance: Random) -> str:
    number, fraction = chance.choice((0, 1, 2, 5, 30, 90, 3600, 10**9)), chance.choice(("", "", "", ".5", ".001"))
    return f"{number}{fraction}{chance.choice(UNITS)}"


def _moment(chance: Random) -> int:
    """Return seconds since 1970: near one of this century's changes of clocks, around now, or anywhere."""
    match chance.randrange(4):
        case 0:
            return int(datetime(2024, 3, 31, 1, tzinfo=UTC).timestamp()) + chance.randrange(-90_000, 90_000)
        case 1:
            return int(datetime(2024, 10, 27, 1, tzinfo=UTC).timestamp()) + chance.randrange(-90_000, 90_000)
        case 2:
            return chance.randrange(-62_135_596_800, 253_402_300_799)
    return 1_714_564_800 + chance.randrange(-10_000_000, 10_000_000)
