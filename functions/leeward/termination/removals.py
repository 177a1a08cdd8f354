"""Removal of single pods: the requests, sent beside each other, and the order of evictions when some pods cannot be
evicted.

An admission webhook on `pods/eviction` may take 30 seconds, and a request that is cut off ends its call to the webhook:
that pod would never leave. A request without an answer continues; the next pod is asked about. Pods whose eviction
the API server fails or refuses move to the end of their wave and are retried after a growing pause, so that no other
pod waits for them. A PodDisruptionBudget that refuses one of its pods is asked again after a growing pause as well, for
one pod of all that it selects. `Retries` calls no API."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from leeward.errors import ClusterUnreachableError, ThrottledError
from leeward.model.blocked import BlockedLine, Obstacle, Stage, unanswered
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.ports.kubernetes import EvictionRefusedError, Kubernetes
from leeward.termination.drain_plan import Eviction

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=8)
TRIES = 3  # of a pod in one step, before it counts as blocked
SLOW = timedelta(seconds=15)  # the longest that a request for such a pod may take, with some reserve
LAST_SECONDS = timedelta(seconds=10)  # before the instance is released: no pause grows any more
LONGEST = timedelta(seconds=32)  # of a request: the client gives it up after 31
PROMPT_SECONDS = 3.0  # an ordinary answer takes milliseconds; the next pod waits no longer for this one's
QUICK_SECONDS = 0.5  # the same for a pod that is `slow`
MOST, MOST_SLOW = 8, 4  # requests under way: of all pods, and of those that are slow


@dataclass(slots=True, kw_only=True)
class _Failure:
    tries: int
    again: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    tries: int
    again: datetime


@dataclass(slots=True)
class Retries:
    """Pods that cannot be evicted, as known in one step. `earlier`: key -> why, as the step before noted."""

    earlier: Mapping[str, str] = field(default_factory=dict)
    _failures: dict[str, _Failure] = field(default_factory=dict)  # by uid
    _refused: dict[str, _Refused] = field(default_factory=dict)  # by a budget's key or a pod's uid
    _budgets: dict[str, PodDisruptionBudget] = field(default_factory=dict)  # those that have refused a pod

    @classmethod
    def after(cls, blocked_by: Iterable[str]) -> "Retries":
        """Build it from the notes of the steps before in the record."""
        lines = [BlockedLine.read(line) for line in blocked_by]
        return cls({line.pod: line.why for line in lines if line.pod and line.obstacle})

    def in_order(self, turn: Sequence[Eviction], waits_in: Callable[[str], bool]) -> Iterator[Eviction]:
        """Yield the turn in the order of its waves. Within a wave pods of namespaces without a failure come first and
        pods that failed themselves last: webhooks and policies usually select by namespace. A failure during the turn
        counts at once, and so does a request without an answer: `waits_in` a namespace.
        """
        left = list(turn)
        while left:
            failed = {eviction.pod.key for eviction in turn if self.has_failed(eviction)}
            spaces = {key.partition("/")[0] for key in failed}
            spaces |= {eviction.pod.namespace for eviction in left if waits_in(eviction.pod.namespace)}
            left.sort(key=lambda one: (one.wave, one.pod.key in failed, one.pod.namespace in spaces))
            yield left.pop(0)

    def has_failed(self, eviction: Eviction) -> bool:
        """Return whether the pod's eviction failed in this step or in the one before."""
        return eviction.pod.uid in self._failures or eviction.pod.key in self.earlier

    def failed(self, eviction: Eviction, why: str, now: datetime) -> None:
        """Note a failure; the pause before the next try doubles."""
        known = self._failures.get(eviction.pod.uid)
        tries = known.tries + 1 if known else 1
        self._failures[eviction.pod.uid] = _Failure(tries=tries, again=now + _pause(tries), why=why)

    def refused(
        self,
        eviction: Eviction,
        names: Iterable[str],
        budgets: Sequence[PodDisruptionBudget],
        now: datetime,
        release: datetime | None = None,
    ) -> None:
        """Note the budgets (`ns/name`) that forbid an eviction; the pause before they are asked again doubles: 1, 2, 4,
        8 s, and stays at one second shortly before the instance is released. `budgets`: those known by now.
        """
        named = tuple(names)
        self._budgets.update((budget.key, budget) for budget in budgets if budget.key in named)
        for key in (*named, eviction.pod.uid):
            known = self._refused.get(key)
            tries = known.tries + 1 if known else 1
            pause = _pause(tries)
            if release is not None and now + pause >= release - LAST_SECONDS:
                pause = FIRST_PAUSE
            self._refused[key] = _Refused(tries=tries, again=now + pause)

    def allowed(self, eviction: Eviction) -> None:
        """Note that the pod was evicted: its budgets are asked about the next one without a pause."""
        for budget in [known for known in self._budgets.values() if known.selects(eviction.pod)]:
            self._refused.pop(budget.key, None)

    def waits(self, eviction: Eviction, now: datetime, let_go: datetime | None) -> str | None:
        """Return why the pod is not evicted in this turn, or None if it is. Shortly before the release of the instance,
        a request that may hang is not begun.
        """
        failure = self._failures.get(eviction.pod.uid)
        if failure is not None and now < failure.again:
            return failure.why
        if let_go is not None and self.has_failed(eviction) and now + SLOW >= let_go:
            return failure.why if failure else self.earlier[eviction.pod.key]
        return None

    def refused_with(self, eviction: Eviction, now: datetime) -> tuple[str, ...]:
        """Return the budgets (`pdb ns/name`) that have refused this pod, or another one that they select, and are not
        asked again yet. A budget's answer about a pod that is not ready depends on the pod: there its own refusals
        count.
        """
        pod = eviction.pod
        if pod.ready:
            paused = (budget for budget in self._budgets.values() if self._pauses(budget.key, now))
            return tuple(f"pdb {budget.key}" for budget in paused if budget.selects(pod))
        if not self._pauses(pod.uid, now):
            return ()
        return tuple(f"pdb {budget.key}" for budget in self._budgets.values() if budget.selects(pod))

    def _pauses(self, key: str, now: datetime) -> bool:
        known = self._refused.get(key)
        return known is not None and now < known.again

    def worn_out(self, eviction: Eviction) -> bool:
        """Return whether more tries within this step would only burn time."""
        failure = self._failures.get(eviction.pod.uid)
        return failure is None or failure.tries >= TRIES or eviction.pod.key in self.earlier


def _pause(tries: int) -> timedelta:
    """Return the pause after so many tries. The exponent is bounded: pods of one budget add up their tries, and a
    power of all of them is more than a timedelta holds.
    """
    return min(FIRST_PAUSE * (1 << min(tries - 1, LONGEST_PAUSE // FIRST_PAUSE)), LONGEST_PAUSE)


@dataclass(slots=True, kw_only=True)
class RemovalRequest:
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
        self._sent: dict[str, tuple[RemovalRequest, Callable[[float], bool]]] = {}  # by the pod's uid

    def __bool__(self) -> bool:
        return bool(self._sent)

    def send(self, removal: RemovalRequest) -> None:
        """Begin the request. One to delete takes the place of one to evict."""
        work = partial(removal.send, self._kubernetes)
        self._sent[removal.eviction.pod.uid] = (removal, self._kubernetes.beside(work))

    def of(self, pod: Pod) -> RemovalRequest | None:
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

    def under_way(self) -> tuple[RemovalRequest, ...]:
        """Return all of them."""
        return tuple(removal for removal, _ in self._sent.values())

    def ended(self, removal: RemovalRequest, seconds: float) -> bool:
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
