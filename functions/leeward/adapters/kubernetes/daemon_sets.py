"""Which DaemonSets exist, remembered by each sandbox for some minutes."""

from collections.abc import Callable
from datetime import datetime, timedelta

LASTS = timedelta(minutes=5)


class KnownDaemonSets:
    """The last list of one cluster. A DaemonSet that is deleted takes its pods along (what orphans them also takes
    their owner off), so an old list leaves at most a pod on the node that ends with it. One that is not in the list may
    be new: then it is read again.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._last: tuple[datetime, frozenset[str]] | None = None

    def get(self, among: frozenset[str] | None, read: Callable[[], frozenset[str]]) -> frozenset[str]:
        """`namespace/name` of each. `among` None: as it is now; else a list that has them all may be `LASTS` old."""
        if among is not None and self._last is not None:
            at, names = self._last
            if self._now() < at + LASTS and among <= names:
                return names
        names = read()
        self._last = (self._now(), names)
        return names
