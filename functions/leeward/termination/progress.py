"""Progress of one step of a drain, and the sentences for people about the pods that are left."""

from dataclasses import dataclass, field
from datetime import datetime

from leeward.budgets.healthy_pods import HealthSample
from leeward.model.counts import count_of
from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.termination.drain_plan import DrainPlan

KUBELET = 0.5  # seconds after a pod's grace until its kubelet has confirmed its end
SHORTEST = 2.0  # seconds of a pause


@dataclass(slots=True)
class Progress:
    """Progress of one step so far. `deleted`: pods that were deleted instead of evicted, among the evicted. `moved`: a
    pod has left, or was evicted. `not_asked`: pods whose turn it is and for which the step had no time. `healthy`:
    samples of the budgets and Deployments that were read. `cancelled`: why the drain does not begin, empty if it does.
    """

    evicted: int = 0
    deleted: int = 0
    moved: bool = False
    not_asked: int = 0
    blocked_by: dict[str, tuple[str, ...]] = field(default_factory=dict)  # pod -> its blockers
    healthy: list[HealthSample] = field(default_factory=list)
    cancelled: str = ""

    @property
    def blockers(self) -> tuple[str, ...]:
        """Lines for people, one per pod."""
        return tuple(f"{pod}: {', '.join(why)}" for pod, why in sorted(self.blocked_by.items()))


def evicted_so_far(record: TerminationRecord, progress: Progress) -> int:
    """Return how many pods were evicted in this period, for people; 0 where this step has evicted none."""
    return record.pods_evicted + progress.evicted if progress.evicted else 0


def leaving(plan: DrainPlan, progress: Progress) -> str:
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


def forced(plan: DrainPlan, progress: Progress) -> str:
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
