"""Clock of the waits of state machines: real seconds times one factor that can be changed while they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SLICE_SECONDS = 0.2
_SMALLEST_FACTOR = 1e-6


class ScaledClock:
    """Clock whose second lasts ``factor`` real seconds (0.1: ten times as fast)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._factor = 1.0
        self._real = time.monotonic()
        self._scaled = 0.0

    @property
    def factor(self) -> float:
        """Return the real seconds per second of this clock."""
        return self._factor

    def set_factor(self, factor: float) -> None:
        """Change the pace from now on, also for present waiters; it must not be negative."""
        if factor < 0:
            raise ValueError(f"factor must be 0 or more, found {factor}")
        with self._lock:
            self._scaled, self._real = self._read(), time.monotonic()
            self._factor = max(factor, _SMALLEST_FACTOR)

    def now(self) -> float:
        """Return the seconds of this clock since it was made."""
        with self._lock:
            return self._read()

    def slice_until(self, deadline: float) -> float:
        """Return how many real seconds to block before the next check: short, and not past ``deadline``."""
        return min(_SLICE_SECONDS, max(0.0, (deadline - self.now()) * self._factor))

    def sleep(self, seconds: float, still: Callable[[], None]) -> None:
        """Sleep that many seconds of this clock; ``still`` is called repeatedly and may raise to end the sleep."""
        deadline = self.now() + seconds
        while self.now() < deadline:
            still()
            time.sleep(self.slice_until(deadline))

    def _read(self) -> float:
        return self._scaled + (time.monotonic() - self._real) / self._factor
