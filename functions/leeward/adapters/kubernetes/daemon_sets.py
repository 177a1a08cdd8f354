"""DaemonSets that exist, remembered by each sandbox for some minutes."""

from collections.abc import Callable
from datetime import datetime, timedelta

LASTS = timedelta(minutes=5)
READ_SINGLY = 8  # more are listed at once


class KnownDaemonSets:
    """DaemonSets of one cluster. A deleted DaemonSet takes its pods along (orphaning them also removes their owner), so
    an old answer leaves at most a pod on the node that ends with it. A DaemonSet that was missing is read again.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._seen: dict[str, datetime] = {}  # `namespace/name` of those that existed, and when

    def get(
        self, among: frozenset[str] | None, list_all: Callable[[], frozenset[str]], exists: Callable[[str], bool]
    ) -> frozenset[str]:
        """Return `namespace/name` of each that exists. `among` None: all, as it is now; else these, read at most every
        `LASTS`.
        """
        now = self._now()
        seen = {name: at for name, at in self._seen.items() if now < at + LASTS}
        unknown = sorted(among - seen.keys()) if among is not None else ()
        if among is None or len(unknown) > READ_SINGLY:
            names = list_all()
            self._seen = dict.fromkeys(names, now)
            return names if among is None else names & among
        self._seen = seen | {name: now for name in unknown if exists(name)}
        return among & self._seen.keys()
