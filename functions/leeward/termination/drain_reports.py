"""Reports of a drain: its progress in sentences, Events on the Node, and the annotation on the pods that have to leave.

A drain that has given up is reported by PodEvictionFailure alone: "cannot drain yet" would be false from then on. The
annotation says when the node ends, so that applications save their work by then. It is best effort: written while pods
are evicted, never before, so it delays no eviction, and nothing depends on it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from leeward.budgets.healthy_pods import HealthSample
from leeward.errors import LeewardError
from leeward.model.counts import count_of
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.model.well_known import TERMINATES_AT
from leeward.ports.kubernetes import Kubernetes
from leeward.termination.drain_plan import DrainPlan
from leeward.termination.settling import Awaited
from leeward.termination.situation import DrainContext

KUBELET = 0.5  # seconds after a pod's grace until its kubelet has confirmed its end
SHORTEST = 2.0  # seconds of a pause
NOTICE = timedelta(minutes=2)  # with less, evictions need the API server, and SIGTERM comes before kubelet's refresh
DEREGISTERING, DETACHING = "AwaitingDeregistration", "AwaitingVolumeDetachment"  # reasons of Events
BLOCKED, GAVE_UP = "DrainBlocked", "PodEvictionFailure"
BLOCKED_AFTER = timedelta(seconds=30)  # without a pod that moved: until then a drain is only waiting for its turn
LONGEST_MESSAGE = 1000


@dataclass(slots=True)
class DrainProgress:
    """Progress of one step so far."""

    evicted: int = 0
    deleted: int = 0  # instead of evicted, among the evicted
    moved: bool = False  # a pod has left, or was evicted
    not_asked: int = 0  # pods whose turn it is and for which the step had no time
    blocked_by: dict[str, tuple[str, ...]] = field(default_factory=dict)  # pod -> its blockers
    healthy: list[HealthSample] = field(default_factory=list)  # of the budgets and Deployments that were read
    cancelled: str = ""  # why the drain does not begin, empty if it does

    @property
    def blockers(self) -> tuple[str, ...]:
        """Lines for people, one per pod."""
        return tuple(f"{pod}: {', '.join(why)}" for pod, why in sorted(self.blocked_by.items()))


def evicted_so_far(record: TerminationRecord, progress: DrainProgress) -> int:
    """Return how many pods were evicted in this period, for people; 0 where this step has evicted none."""
    return record.pods_evicted + progress.evicted if progress.evicted else 0


def leaving(plan: DrainPlan, progress: DrainProgress) -> str:
    """Name the pod that takes longest, or how many pods the step had no time to evict. Pods of a wave that has not
    begun are not terminating.
    """
    if progress.not_asked:
        return (
            f"{progress.not_asked} of {count_of(len(plan.evict), 'pod was', 'pods were')} "
            f"not asked yet: the API server answers slowly"
        )
    ends = [(eviction.pod.deletion, eviction.pod.key) for eviction in plan.evict if eviction.pod.deletion is not None]
    last = f", the last one ({max(ends)[1]}) until {format_instant(max(ends)[0])}" if ends else ""
    asked = len(plan.turn)
    later = len(plan.evict) - asked
    pods = "1 pod is" if asked == 1 else f"{asked} pods are"
    return f"{pods} terminating{last}{f'; {later} of a later wave leave after that' if later else ''}"


def forced(plan: DrainPlan, progress: DrainProgress) -> str:
    """Name the pods that are deleted once the drain is out of time, and those that are not: `force` deletes no pod that
    the policy or a flag protects.
    """
    kept = {refused.pod.key for refused in plan.refuse}
    named = [f"deleting {pod}: {', '.join(why)}" for pod, why in sorted(progress.blocked_by.items()) if pod not in kept]
    stay = [f"not deleting {refused.pod.key}: {refused.reason}" for refused in plan.refuse]
    return "; ".join([*(named or [leaving(plan, progress)]), *stay])


def moved_last(record: TerminationRecord, started: datetime) -> datetime:
    """Return when a pod last moved, or the first could have."""
    times = (record.times.get("moved"), record.times.get("evicting"), started)
    return max(moment for moment in times if moment is not None)


def longest_grace(plan: DrainPlan, now: datetime) -> float:
    """Return the seconds until the last evicted pod has ended."""
    left = [(e.pod.deletion - now).total_seconds() + KUBELET for e in plan.turn if e.pod.deletion]
    return max(left, default=SHORTEST)


class PodNotices:
    """Annotations of one step of a drain. Leaving the context waits until they are written, two seconds at most."""

    def __init__(self, kubernetes: Kubernetes) -> None:
        self._kubernetes = kubernetes
        self._asked: set[tuple[str, str]] = set()  # (uid, value): each is tried once a step
        self._waits: list[Callable[[], None]] = []

    def write(self, plan: DrainPlan, now: datetime) -> None:
        """Begin to annotate the pods that have to leave and do not carry the node's deadline yet, whether they are
        evicted now, wait for their turn or a budget, or forbid the drain.
        """
        value = format_instant(plan.deadline.replace(microsecond=0)) if plan.deadline is not None else ""
        pods = [pod for pod in _pods_to_leave(plan) if self._wants(pod, value, plan, now)]
        if pods:
            self._asked |= {(pod.uid, value) for pod in pods}
            self._waits.append(self._kubernetes.annotate_pods(pods, {TERMINATES_AT: value or None}))

    def _wants(self, pod: Pod, value: str, plan: DrainPlan, now: datetime) -> bool:
        """Return whether the pod gets the value: the first only if it leaves time, a correction in any case."""
        known = pod.annotations.get(TERMINATES_AT, "")
        if known == value or (pod.uid, value) in self._asked:
            return False
        return bool(known) or (plan.deadline is not None and plan.deadline - now > NOTICE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wait in self._waits:
            wait()


def withdraw(node: Node, kubernetes: Kubernetes) -> None:
    """Remove the annotation from the pods of a node that returns to service. Best effort."""
    with suppress(LeewardError):
        pods = [pod for pod in kubernetes.pods_on(node.name) if TERMINATES_AT in pod.annotations]
        if pods:
            kubernetes.annotate_pods(pods, {TERMINATES_AT: None})()


def _pods_to_leave(plan: DrainPlan) -> list[Pod]:
    pods = [eviction.pod for eviction in plan.evict] + [refused.pod for refused in plan.refuse]
    return [pod for pod in pods if pod.deletion is None and not pod.finished]


def report_awaited(awaited: Awaited, reason: str, node: Node, drain: DrainContext) -> str:
    """Record the awaited objects where people look, and return them as one sentence."""
    record, sentence, now = drain.record, "; ".join(awaited.sentences), drain.ports.clock.now()
    drain.ports.claims.note_attempt(record.instance, record.attempt, blocked_by=awaited.sentences)
    drain.kubernetes.event(node, reason=reason, message=sentence[:LONGEST_MESSAGE], warning=False, now=now)
    return sentence


def report_blocked(why: str, node: Node, progress: DrainProgress, drain: DrainContext, now: datetime) -> None:
    """Report what blocks a drain that continues, once no pod has moved for a while."""
    since = moved_last(drain.record, drain.started)
    if progress.blocked_by and not progress.moved and now >= since + BLOCKED_AFTER:
        message = f"cannot drain yet: {why}"[:LONGEST_MESSAGE]
        drain.kubernetes.event(node, reason=BLOCKED, message=message, warning=True, now=now)


def report_given_up(message: str, node: Node, drain: DrainContext, now: datetime) -> None:
    """Report that the time of the drain has passed and that pods are left."""
    drain.kubernetes.event(node, reason=GAVE_UP, message=message[:LONGEST_MESSAGE], warning=True, now=now)
