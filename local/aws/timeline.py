"""Schedule of later actions: boots, shut-downs, hook time-outs, health checks. One thread runs them in order of their
time.

Callbacks run one after the other while holding the model's lock, so they see a consistent EC2 and Auto Scaling.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

logger = logging.getLogger("local.aws.timeline")


class Timeline:
    """Heap of callbacks by monotonic time (seconds), run by one daemon thread."""

    def __init__(self, lock: AbstractContextManager[Any]) -> None:
        self._model_lock = lock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()

    def start(self) -> None:
        """Begin to run due callbacks."""
        threading.Thread(target=self._run, daemon=True, name="local-timeline").start()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run ``action`` once, ``seconds`` from now."""
        with self._changed:
            heapq.heappush(self._heap, (time.monotonic() + seconds, next(self._numbers), action))
            self._changed.notify()

    def every(self, seconds: float, action: Callable[[], None]) -> None:
        """Run ``action`` repeatedly with ``seconds`` between two runs."""

        def again() -> None:
            try:
                action()
            finally:
                self.after(seconds, again)

        self.after(seconds, again)

    def _run(self) -> None:
        while True:
            action = self._next()
            try:
                with self._model_lock:
                    action()
            except Exception:
                logger.exception("a timed action failed")

    def _next(self) -> Callable[[], None]:
        with self._changed:
            while True:
                wait = self._heap[0][0] - time.monotonic() if self._heap else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._heap)[2]
                self._changed.wait(wait)
