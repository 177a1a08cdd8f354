"""Timers: a heap of (moment, order of arrival), so that equal moments always fire in the same order."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

Action = Callable[[], None]


class Timers:
    """Timers that cannot be cancelled: an action checks whether it still applies, because the state may have
    changed.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._order = itertools.count()

    def at(self, due: float, action: Action) -> None:
        heapq.heappush(self._heap, (due, next(self._order), action))

    def next_due(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def pop_due(self, moment: float) -> list[Action]:
        """Remove and return everything that is due at that moment or earlier, oldest first."""
        actions = []
        while self._heap and self._heap[0][0] <= moment:
            actions.append(heapq.heappop(self._heap)[2])
        return actions


class ModelTime:
    """Present of the model: the injected clock, except inside a step, where each timer sees its own moment.

    It never runs backwards, whatever the clock does.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._latest = 0.0
        self._pinned = False

    def now(self) -> float:
        """Return seconds since 1970."""
        if not self._pinned:
            self._latest = max(self._latest, self._clock())
        return self._latest

    def pin(self, moment: float) -> None:
        self._latest = max(self._latest, moment)
        self._pinned = True

    def pin_latest(self) -> None:
        """Stay at the last observed moment: writes of that moment are processed as of then."""
        self._pinned = True

    def release(self) -> None:
        self._pinned = False
