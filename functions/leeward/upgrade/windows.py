"""Times at which an upgrade may start further nodes: inside its windows, outside every freeze.

Decides from the policy's windows; whether one is open is decided in `leeward.policy.schedule`."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice

from cronsim import CronSim

from leeward.policy.document import Window
from leeward.policy.schedule import MACROS, any_active, is_active, zone

_FURTHEST = timedelta(days=366)
_MOST_STARTS = 3 * 24 * 60  # starts of one window that are tried
_MOST_HOPS = 100  # from the end of a freeze to the start of a window and so on


def is_open(windows: Sequence[Window], freeze: Sequence[Window], now: datetime) -> bool:
    """Return whether further nodes may start; always open without windows. A freeze wins over every window."""
    return (not windows or any_active(windows, now)) and not any_active(freeze, now)


def opens(windows: Sequence[Window], freeze: Sequence[Window], now: datetime) -> datetime | None:
    """Return the first moment from now on at which it is open; None when there is none within a year."""
    moment = now
    for _ in range(_MOST_HOPS):
        ends = [end for window in freeze if (end := _end(window, moment)) is not None]
        if ends:
            moment = max(ends)
        elif windows and not any_active(windows, moment):
            starts = [start for window in windows if (start := next(_starts(window, moment), None)) is not None]
            if not starts:
                return None
            moment = min(starts)
        else:
            return moment
        if moment - now > _FURTHEST:
            return None
    return None


def _end(window: Window, moment: datetime) -> datetime | None:
    """Return the end of the window's span that holds the moment; None when none does."""
    if not is_active(window, moment):
        return None
    spans = (start for start in _starts(window, moment - window.duration) if start <= moment)
    return next(spans) + window.duration


def _starts(window: Window, after: datetime) -> Iterator[datetime]:
    """Yield starts later than the moment, in UTC."""
    line = MACROS.get(window.schedule, window.schedule)
    for start in islice(CronSim(line, after.astimezone(zone(window.time_zone))), _MOST_STARTS):
        if start.astimezone(UTC) > after:
            yield start.astimezone(UTC)
