"""Recurring windows: a cron line in an IANA time zone, and how long each one lasts.

Decides whether a window is open at a moment; budgets and other packages decide what an open or closed window means.
Where clocks change, Debian cron's rules hold: a start in the skipped hour comes at its end, one in the repeated hour
comes once, in its first pass; lines with `*` in minute or hour follow real time. The duration is elapsed time."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from leeward.policy.document import Window

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ZONE_NAME = re.compile(r"[A-Z][A-Za-z0-9_+/-]{0,63}", re.ASCII)  # keeps out localtime, posixrules and right/…
_RANGE = re.compile(r"(?<![^,])(\w+)-(\w+)/0*[1-9]\d*(?![^,])", re.ASCII)
_DAYS, _MONTHS = "sun mon tue wed thu fri sat", "jan feb mar apr may jun jul aug sep oct nov dec"
_NUMBERS = {name: str(number) for number, name in (*enumerate(_DAYS.split()), *enumerate(_MONTHS.split(), 1))}
_EARLIEST = datetime(2, 1, 1, tzinfo=UTC)  # local times below the year 1 cannot be represented
_SAMPLE = datetime(2024, 1, 1, tzinfo=UTC)
_MOST_REPEATED = 24 * 60  # starts that one repeated span of wall time can hold


def is_active(window: Window, now: datetime) -> bool:
    """Return whether a start of the window lies in (now - duration, now]: open from its start, closed at its end."""
    before = now - window.duration if now - _EARLIEST > window.duration else _EARLIEST
    starts = CronSim(MACROS.get(window.schedule, window.schedule), before.astimezone(zone(window.time_zone)))
    # Within a repeated hour cronsim may first name starts that lie before `before`: those are over.
    instants = (start.astimezone(UTC) for start in islice(starts, _MOST_REPEATED))
    try:
        start = next((start for start in instants if start > before), None)
    except OverflowError:  # the next one is past the year 9999
        return False
    return start is not None and start <= now


def next_start(window: Window, now: datetime) -> datetime | None:
    """Return the first start of the window after now, in UTC; None where there is none."""
    starts = CronSim(MACROS.get(window.schedule, window.schedule), now.astimezone(zone(window.time_zone)))
    instants = (start.astimezone(UTC) for start in islice(starts, _MOST_REPEATED))
    try:
        return next((start for start in instants if start > now), None)
    except OverflowError:  # the next one is past the year 9999
        return None


def any_active(windows: Iterable[Window], now: datetime) -> bool:
    """Return whether at least one of the windows is open; no windows, none open."""
    return any(is_active(window, now) for window in windows)


@lru_cache(maxsize=256)
def zone(name: str) -> tzinfo:
    """Return the time zone of an IANA name. Raises ValueError for anything else."""
    if name == "UTC":
        return UTC  # needs no time zone database
    if not _ZONE_NAME.fullmatch(name):
        raise ValueError(f"no IANA time zone {name!r}")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:  # OSError: the name of a folder, such as America
        raise ValueError(f"no IANA time zone {name!r}") from error


def parse_schedule(text: object) -> str:
    """Parse a cron line of five fields or a macro of cron; even out spaces, write `?` as `*`. Raises ValueError."""
    if not isinstance(text, str) or len(text) > 200:
        raise ValueError("not a cron line")
    line = " ".join("*" if field == "?" else _RANGE.sub(_of_one, field) for field in text.split())
    if line in MACROS:
        return line
    if len(line.split()) != 5:
        raise ValueError("a cron line has five fields")
    try:
        CronSim(line, _SAMPLE)
    except CronSimError as error:
        raise ValueError(str(error)) from error
    return line


def _of_one(found: re.Match[str]) -> str:
    """Return a range of one value without its step, as in crontab(5); cronsim would take `3-3/4` for `3/4`."""
    first, last = (_NUMBERS.get(name.lower(), name).lstrip("0") for name in found.group(1, 2))
    return found[1] if first == last else found[0]
