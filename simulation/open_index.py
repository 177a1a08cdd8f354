"""Lists of open items (the table's index of records, a state machine's executions) that follow the truth at some
distance: a new item may still be missing, a closed one may still be listed."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

REMEMBERED = 60.0  # seconds of changes


class Lag(Protocol):
    """Age of an answer. `index_lag` in seconds; `count` is called for answers that were not true any more."""

    def index_lag(self) -> float: ...
    def count(self, name: str) -> None: ...


class OpenIndex:
    """Index that is up to date until `behind` is called."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}  # open items, and since when
        self._changes: deque[tuple[float, str, bool]] = deque()  # (when, which, whether it was opened)
        self._now: Callable[[], float] = lambda: 0.0
        self._lag: Lag | None = None

    def behind(self, now: Callable[[], float], lag: Lag) -> None:
        """Make its answers as old as `lag` says from now on; `now` in seconds."""
        self._now, self._lag = now, lag

    def put(self, name: str, *, is_open: bool) -> None:
        """Record that an item was opened, closed, or written to without either."""
        if (name in self.since) is is_open:
            return
        if is_open:
            self.since[name] = self._now()
        else:
            del self.since[name]
        if self._lag is not None:
            now = self._now()
            self._changes.append((now, name, is_open))
            while self._changes[0][0] < now - REMEMBERED:
                self._changes.popleft()

    def read(self) -> tuple[str, ...]:
        """Return the names of all open items, as they were a moment ago."""
        if self._lag is None or not self._changes:
            return tuple(self.since)
        behind, view = self._now() - self._lag.index_lag(), dict.fromkeys(self.since)
        for when, name, opened in reversed(self._changes):
            if when <= behind:
                break
            if opened:
                view.pop(name, None)
            else:
                view[name] = None
        if view.keys() != self.since.keys():
            self._lag.count("index behind")
        return tuple(view)
