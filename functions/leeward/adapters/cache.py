"""Values that are cached for a time, per process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from leeward.ports.clock import Clock


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Cache that keeps the results of `load` for `lasts`. A load that raises is not kept.

    Two threads may load the same key at once; both answers are good, the later one stays.
    """

    def __init__(self, clock: Clock, lasts: timedelta) -> None:
        self._clock = clock
        self._lasts = lasts
        self._kept: dict[K, tuple[datetime, V]] = {}
        self._lock = threading.Lock()

    def get(self, key: K, load: Callable[[], V]) -> V:
        """Return the kept value, or a freshly loaded one when it is older than the span."""
        now = self._clock.now()
        with self._lock:
            entry = self._kept.get(key)
        if entry is not None and now < entry[0]:
            return entry[1]
        value = load()
        with self._lock:
            self._kept[key] = (now + self._lasts, value)
        return value

    def forget(self, key: K) -> None:
        """Drop the value, so that it is loaded again next time."""
        with self._lock:
            self._kept.pop(key, None)
