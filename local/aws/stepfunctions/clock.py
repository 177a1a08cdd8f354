"""The time in which state machines wait: real seconds times one factor that can be changed while they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SLICE_SECONDS = 0.2
_SMALLEST_FACTOR = 1e-6


class ScaledClock:
    """A clock whose second lasts ``factor`` real seconds (0.1: ten times as fast)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._factor = 1.0
        self._real = time.monotonic()
        self._scaled = 0.0

    @property
    def factor(self) -> float:
        """Real seconds per second of this clock."""
        return self._factor

    def set_factor(self, factor: float) -> None:
        """Change the pace from now on, also for those who wait already; must not be negative."""
        if factor < 0:
            raise ValueError(f"factor must be 0 or more, found {factor}")
        with self._lock:
            self._scaled, self._real = self._read(), time.monotonic()
            self._factor = max(factor, _SMALLEST_FACTOR)

    def now(self) -> float:
        """Seconds of this clock since it was made."""
        with self._lock:
            return self._read()

    def slice_until(self, deadline: float) -> float:
        """How many real seconds to block before looking again: short, and not past ``deadline``."""
        return min(_SLICE_SECONDS, max(0.0, (deadline - self.now()) * self._factor))

    def sleep(self, seconds: float, still: Callable[[], None]) -> None:
        """Sleep that many seconds of this clock; ``still`` is called now and then and may raise to wake the sleeper."""
        deadline = self.now() + seconds
        while self.now() < deadline:
            still()
            time.sleep(self.slice_until(deadline))

    def _read(self) -> float:
        return self._scaled + (time.monotonic() - self._real) / self._factor
