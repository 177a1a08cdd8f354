"""Requests that remove the pods of a node, sent beside each other.

An admission webhook on `pods/eviction` may take 30 seconds, and a request that is cut off ends its call to the webhook:
that pod would never leave. So a request without an answer goes on, and the next pod is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.model.blocked import Obstacle, Stage, unanswered
from leeward.ports.kubernetes import EvictionRefusedError, Kubernetes

if TYPE_CHECKING:
    from collections.abc import Callable

    from leeward.model.pod import Pod
    from leeward.termination.drain_plan import Eviction

LONGEST = timedelta(seconds=32)  # of a request: the client gives it up after 31
PROMPT_SECONDS = 3.0  # an ordinary answer takes milliseconds; the next pod waits no longer for this one's
QUICK_SECONDS = 0.5  # the same for a pod that is `slow`
MOST, MOST_SLOW = 8, 4  # requests under way: of all pods, and of those that are slow


@dataclass(slots=True, kw_only=True)
class Removal:
    """Request to remove a pod. `deletes`: without asking a budget; `forces`: it is deleted if its eviction fails."""

    eviction: Eviction
    began: datetime
    deletes: bool
    forces: bool
    slow: bool  # an earlier request for the pod failed, or one of its namespace has no answer yet
    deleted: bool = False

    def send(self, kubernetes: Kubernetes) -> None:
        """Evict or delete the pod. Raises EvictionRefusedError, ClusterUnreachableError, ThrottledError."""
        pod, grace = self.eviction.pod, self.eviction.grace_seconds
        if not self.deletes:
            try:
                kubernetes.evict(pod, grace)
            except (EvictionRefusedError, ClusterUnreachableError, ThrottledError):
                if not self.forces:
                    raise
            else:
                return
        kubernetes.delete_pod(pod, grace)
        self.deleted = True

    def why(self, now: datetime) -> str:
        """Return the sentence for a request that has no answer yet."""
        name, resource = ("deletion", "pods") if self.deletes else ("eviction", "pods/eviction")
        said = unanswered((now - self.began).total_seconds(), f"an admission webhook on {resource} may be slow")
        return Obstacle(stage=Stage.SERVER, name=name, denies=False, said=said).sentence


class Removals:
    """Requests of one step that are under way."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes
        self._sent: dict[str, tuple[Removal, Callable[[float], bool]]] = {}  # by the pod's uid

    def __bool__(self) -> bool:
        return bool(self._sent)

    def send(self, removal: Removal) -> None:
        """Begin the request. One to delete takes the place of one to evict."""
        work = partial(removal.send, self._kubernetes)
        self._sent[removal.eviction.pod.uid] = (removal, self._kubernetes.beside(work))

    def of(self, pod: Pod) -> Removal | None:
        """Return the request for the pod that is under way."""
        known = self._sent.get(pod.uid)
        return known[0] if known else None

    def full(self, *, slow: bool) -> bool:
        """Return whether no other request may begin: slow pods leave room for the others."""
        slow_ones = sum(removal.slow for removal, _ in self._sent.values())
        return len(self._sent) >= MOST or (slow and slow_ones >= MOST_SLOW)

    def waits_in(self, namespace: str) -> bool:
        """Return whether a request for a pod of the namespace has no answer yet."""
        return any(removal.eviction.pod.namespace == namespace for removal, _ in self._sent.values())

    def under_way(self) -> tuple[Removal, ...]:
        """Return all of them."""
        return tuple(removal for removal, _ in self._sent.values())

    def ended(self, removal: Removal, seconds: float) -> bool:
        """Wait so long for the answer; return whether the pod is removed. Raises what the request has failed with."""
        uid = removal.eviction.pod.uid
        try:
            if not self._sent[uid][1](max(seconds, 0.0)):
                return False
        except Exception:
            del self._sent[uid]
            raise
        del self._sent[uid]
        return True
