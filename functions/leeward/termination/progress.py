"""What one step of a drain has done, and how people are told of what is left."""

from dataclasses import dataclass, field
from datetime import datetime

from leeward.model.termination import TerminationRecord
from leeward.model.times import format_instant
from leeward.termination.drain_plan import DrainPlan

KUBELET = 0.5  # seconds after a pod's grace until its kubelet has confirmed its end
SHORTEST = 2.0  # seconds of a pause


@dataclass(slots=True)
class Progress:
    """What one step has done so far. `moved`: a pod has left, or was told to. `not_asked`: pods whose turn it is and
    for which the step had no time.
    """

    evicted: int = 0
    moved: bool = False
    not_asked: int = 0
    blocked_by: dict[str, tuple[str, ...]] = field(default_factory=dict)  # pod -> what blocks it

    @property
    def blockers(self) -> tuple[str, ...]:
        """One line a pod, as people read it."""
        return tuple(f"{pod}: {', '.join(why)}" for pod, why in sorted(self.blocked_by.items()))


def leaving(plan: DrainPlan, progress: Progress) -> str:
    """The pod that takes longest, or how many the step had no time to ask."""
    if progress.not_asked:
        return f"{progress.not_asked} of {len(plan.evict)} pods were not asked yet: the API server answers slowly"
    ends = [(eviction.pod.deletion, eviction.pod.key) for eviction in plan.evict if eviction.pod.deletion is not None]
    last = f", the last one ({max(ends)[1]}) until {format_instant(max(ends)[0])}" if ends else ""
    return f"{len(plan.evict)} pods are on their way out{last}"


def moved_last(record: TerminationRecord, started: datetime) -> datetime:
    """When a pod last moved, or the first could have."""
    times = (record.times.get("moved"), record.times.get("evicting"), started)
    return max(moment for moment in times if moment is not None)


def longest_grace(plan: DrainPlan, now: datetime) -> float:
    """Seconds until the last pod that was told to leave has ended."""
    left = [(e.pod.deletion - now).total_seconds() + KUBELET for e in plan.turn if e.pod.deletion]
    return max(left, default=SHORTEST)
