"""Cache of DescribeNodegroup's answers: one call per node group and span, however many callers.

Decides when to call again and what a failure means: the tags alone, reported once. Source: Cluster Autoscaler's
proposal "Circumvent 50 tag ASG limit for EKS ManagedNodegroups" (one minute, fall back to the tags on any error)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from leeward.errors import LeewardError
from leeward.model.nodegroup import Nodegroup
from leeward.ports.clock import Clock
from leeward.ports.eks import Nodegroups

JITTER = 0.1  # of the span at most, always longer: never two calls within one span, no stampede at its end


@dataclass(slots=True, kw_only=True)
class _Entry:
    """One node group. `lock` lets one thread call while the others wait for its answer; `said`: the last failure."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    until: datetime | None = None
    nodegroup: Nodegroup | None = None
    said: str = ""


class NodegroupCache:
    """Cache that is safe to share between threads. `chance` gives numbers from 0 to 1 for the jitter; `say` takes one
    sentence for each failure of a node group, again only when it fails with another error or has worked in between.
    """

    def __init__(
        self, nodegroups: Nodegroups, clock: Clock, *, chance: Callable[[], float], say: Callable[[str], None]
    ) -> None:
        self._nodegroups = nodegroups
        self._clock = clock
        self._chance = chance
        self._say = say
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._lock = threading.Lock()

    def get(self, cluster: str, name: str, lasts: timedelta) -> Nodegroup | None:
        """Return the node group, or None when the call fails or is denied: then the tags alone are used. Never raises
        for an AWS error; a failure is kept as long as an answer, so that a denied call is not made at each look-up.
        """
        with self._lock:
            entry = self._entries.setdefault((cluster, name), _Entry())
        with entry.lock:
            now = self._clock.now()
            if entry.until is None or now >= entry.until:
                entry.nodegroup = self._ask(cluster, name, entry)
                entry.until = now + lasts * (1 + JITTER * self._chance())
            return entry.nodegroup

    def _ask(self, cluster: str, name: str, entry: _Entry) -> Nodegroup | None:
        try:
            found = self._nodegroups.describe(cluster, name)
        except LeewardError as error:
            if entry.said != str(error):
                self._say(f"node group {name} of {cluster}: only the group's tags are used: {error}")
            entry.said = str(error)
            return None
        entry.said = ""
        return found
