"""Limit of the CPU time that one input may take."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT = 2.0  # seconds of CPU for one input
_EVERY = 0.25  # seconds of CPU between two looks


class TooSlow(BaseException):
    """End of an input that has taken longer than the limit; a reader that catches every Exception does not catch it."""


class Watchdog:
    """Stop watch of the process' CPU time. `started`: when the input began that is being read, None between inputs."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self.started: float | None = None

    @contextmanager
    def on_guard(self) -> Iterator[None]:
        """Raise TooSlow in the main thread in an input that is past the limit, until the block is left."""
        every = min(_EVERY, self.limit)
        before = signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, every, every)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def begin(self) -> float:
        """Start the watch for one input."""
        self.started = time.process_time()
        return self.started

    def end(self) -> float:
        """Stop the watch and return the seconds of CPU since it was started."""
        started, self.started = self.started, None
        return time.process_time() - started if started is not None else 0.0

    def _look(self, _signal: int, _frame: FrameType | None) -> None:
        started = self.started
        if started is not None and time.process_time() - started > self.limit:
            raise TooSlow(f"more than {self.limit:g} s of CPU")
