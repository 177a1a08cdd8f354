"""Values that are cached for a time, per process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
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


class RecentlyEmpty:
    """Memory of an answer that was empty, for `lasts`: while nothing happens, nothing is asked. An answer with content
    is never kept, so changes of it are seen at once. Without a clock nothing is kept.
    """

    def __init__(self, clock: Clock | None, lasts: timedelta) -> None:
        self._clock, self._lasts = clock, lasts
        self._until: datetime | None = None

    def get(self, load: Callable[[], Mapping[K, V]], *, recent: bool) -> Mapping[K, V]:
        """Return a fresh answer, or an empty one where `recent` allows it and the last was empty within the span."""
        now = self._clock.now() if self._clock else None
        if recent and now and self._until and now < self._until:
            return {}
        self._until = None
        answer = load()
        if now and not answer:
            self._until = now + self._lasts
        return answer
