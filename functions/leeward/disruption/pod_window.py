"""Disruption windows of pods: `leeward.dev/disruption-window: "0 14 * * 6/3h Europe/Berlin"`.

The annotation is a cron line, a slash, the duration of the window, and the IANA time zone of the cron line (UTC without
one). Decides what an annotation means; outside its window it keeps the node as `do-not-disrupt` does. A value that
cannot be read keeps the node at all times: its author wants a limit, and the safe reading is the narrowest one."""

from datetime import datetime, timedelta
from functools import lru_cache

from leeward.policy.document import Window
from leeward.policy.durations import parse_duration
from leeward.policy.fields import legible
from leeward.policy.schedule import is_active, next_start, parse_schedule, zone

EXPECTED = '"CRON/DURATION [TIME ZONE]" such as "0 14 * * 6/3h Europe/Berlin"'
_CRON_FIELDS = 5
_LONGEST = 300  # characters of a value that is read
_SHOWN = 80  # characters of a value that an Event or a table shows


@lru_cache(maxsize=1024)
def parse_window(value: str) -> Window | None:
    """Return the window that an annotation names, None where it cannot be read."""
    words = value.split() if len(value) <= _LONGEST else []
    cron = 1 if value.lstrip().startswith("@") else _CRON_FIELDS
    if len(words) not in {cron, cron + 1}:
        return None
    last, slash, length = words[cron - 1].rpartition("/")
    try:
        schedule, duration = parse_schedule(" ".join((*words[: cron - 1], last))), parse_duration(length)
        zone(words[cron] if len(words) > cron else "UTC")
    except ValueError:
        return None
    if not slash or duration <= timedelta():
        return None
    return Window(schedule=schedule, duration=duration, time_zone=words[cron] if len(words) > cron else "UTC")


@lru_cache(maxsize=4096)
def is_open(value: str, now: datetime) -> bool:
    """Return whether the annotation allows voluntary disruption now; False where it cannot be read."""
    window = parse_window(value)
    return window is not None and is_active(window, now)


@lru_cache(maxsize=4096)
def opens(value: str, now: datetime) -> datetime | None:
    """Return when a closed window opens next; None where it never does or cannot be read."""
    window = parse_window(value)
    return None if window is None else next_start(window, now)


def shown(value: str) -> str:
    """Return the value as an Event or a table may show it: on one line, cut to eighty characters. Pods' authors write
    it.
    """
    return legible(value, _SHOWN)
