"""Pause switch as every function sees it: read at most twice a minute, trusted for a minute.

Decides what holds while it cannot be read: the last known pauses, and nothing voluntary begins. Without this, a
function that loses the table would go on with work that an operator has stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from leeward.errors import LeewardError
from leeward.model.pause import PauseRecord, Pauses

if TYPE_CHECKING:
    from leeward.ports.clock import Clock

READ_AFTER = timedelta(seconds=30)  # a failure then leaves as long again for further tries
TRUSTED = timedelta(seconds=60)
TRY_AGAIN = timedelta(seconds=10)  # a table that fails is not asked in each step of a drain


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Last answer. `read`: when it was given, None: never; `again`: when the switch is read next."""

    record: PauseRecord
    read: datetime | None
    again: datetime
    error: str = ""


class KnownPauses:
    """Cache of the switches. `read` returns the record of a cluster, or raises a LeewardError."""

    def __init__(self, read: Callable[[str], PauseRecord], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    def of_cluster(self, cluster: str) -> Pauses:
        """Return the pauses in force. Raises nothing."""
        now = self._clock.now()
        with self._lock:
            known = self._known.get(cluster)
        if known is None or now >= known.again:
            known = self._load(cluster, known, now)
            with self._lock:
                self._known[cluster] = known
        pauses = known.record.in_force(now)
        if known.read is None or now - known.read > TRUSTED:
            return replace(pauses, unreadable=known.error)
        return pauses

    def _load(self, cluster: str, known: _Known | None, now: datetime) -> _Known:
        try:
            return _Known(record=self._read(cluster), read=now, again=now + READ_AFTER)
        except LeewardError as error:
            last = known or _Known(record=PauseRecord(cluster=cluster), read=None, again=now)
            return replace(last, again=now + TRY_AGAIN, error=f"{type(error).__name__}: {error}")
