"""Disturbance that a run has caused, as figures with limits: pods that were moved again, launches for each node that
ended, minutes under our taint.

A pod is moved when it is evicted by us and its controller creates another one. It is moved again when that other one is
evicted by us within the hour. What an abort or a rollback moves back was asked for: it counts as urgent."""

from collections import deque
from collections.abc import Iterator, Mapping

from local.cluster.objects import Obj, controller_of
from local.cluster.store import Change
from simulation.facts import News, group_of
from simulation.taint_times import TaintTimes
from simulation.unasked_nodes import Unasked
from simulation.view import WorldView

SUCCEEDS = 120.0  # seconds from an eviction to the pod that takes its place
WITHIN = 3600.0  # seconds from one eviction to the next
ENOUGH = 30  # moves, below which a share says nothing
MOST_AGAIN = 0.35  # of the pods that nothing urgent moved; docs/benchmarks.md has the shares of drawn worlds
MOST_LAUNCHES = 1.5  # for each node that was under our taint; docs/benchmarks.md has those of drawn worlds
UNDO = {"abort", "rollback"}  # control requests of operators about an upgrade
SPARE = 6  # launches of instances that never join, in a world with few nodes

EVICTED, AGAIN = "pods evicted", "pods evicted again"
CALM, CALM_AGAIN = "pods evicted for nothing urgent", "pods evicted again for nothing urgent"
LAUNCHES, TAINTED = "launches", "nodes under our taint"
MINUTES, LONGEST = "minutes under our taint", "longest time under our taint"


class Moves:
    """Moves of one run."""

    def __init__(self, unasked: Unasked, times: TaintTimes) -> None:
        self._unasked, self._times = unasked, times
        self._new = News().of
        self._waiting: dict[
            tuple[str, str, str], deque[tuple[float, bool]]
        ] = {}  # controller -> evictions without a successor
        self._moved: dict[str, tuple[float, bool]] = {}  # uid of a pod that succeeds another -> when, nothing urgent
        self._undone: dict[str, float] = {}  # group -> when an operator last took its upgrade back
        self._booting: dict[str, str] = {}  # launches whose Node has not joined -> their group
        self._taken_by_others = (
            0  # launches that ended before they joined, and not for us, or because an operator took the upgrade back
        )
        self._now = 0.0
        self.evicted = self.again = self.calm = self.calm_again = 0

    def watch(self, change: Change) -> None:
        """Observe a write; runs inside it, so it only reads."""
        if change.resource != "pods" or change.old is not None or not self._waiting:
            return
        owner = controller_of(change.obj)
        space = change.obj["metadata"]["namespace"]
        waiting = self._waiting.get((space, owner["kind"], owner["name"])) if owner is not None else None
        while waiting:
            at, calm = waiting.popleft()
            if self._now - at <= SUCCEEDS:
                self._moved[change.obj["metadata"]["uid"]] = at, calm
                return

    def check(self, view: WorldView) -> Iterator[str]:
        """Count the new evictions; yields nothing, because a single move breaks no rule."""
        self._now = view.now
        ordered = [(request.action, request.group) for request in self._new("ordered", view.ordered)]
        ended = [(ending.action, ending.group) for ending in self._new("endings", view.endings)]
        self._undone |= {group: view.now for action, group in (*ordered, *ended) if action in UNDO}
        self._follow_launches(view)
        for eviction in self._new("evictions", view.evictions):
            pod, node = eviction.pod, self._unasked.under.get(eviction.pod.node)
            calm = node is not None and not self._is_asked(node, eviction.instance, view)
            at, before = self._moved.pop(pod.uid, (0.0, False))
            again = view.now - at < WITHIN
            self.evicted += 1
            self.again += again
            self.calm += calm
            self.calm_again += again and before and calm
            if pod.owner is not None:
                key = (pod.namespace, pod.owner.kind, pod.owner.name)
                self._waiting.setdefault(key, deque(maxlen=50)).append((view.now, calm))
        return iter(())

    def _follow_launches(self, view: WorldView) -> None:
        """Count launches that others took in their boot, while EC2 still knows them: it forgets an ended instance."""
        for _, instance in self._new("launches", view.launches):
            group = group_of(view, instance)
            self._booting[instance] = group.name if group is not None else ""
        for instance in [one for one in self._booting if view.joined(one) or not view.running(one)]:
            undone = self._undone.get(self._booting.pop(instance))
            ours = instance in view.asked_by_us and (undone is None or view.now - undone >= WITHIN)
            self._taken_by_others += not (view.joined(instance) or ours)

    def _is_asked(self, node: Obj, instance: str, view: WorldView) -> bool:
        """Return whether something urgent or an operator has asked for the node."""
        group = group_of(view, instance)
        undone = self._undone.get(group.name) if group is not None else None
        return (undone is not None and view.now - undone < WITHIN) or self._unasked.is_urgent(node, view)

    def at_the_end(self, view: WorldView) -> Iterator[str]:
        """Yield figures beyond their limits."""
        if self.calm >= ENOUGH and self.calm_again > MOST_AGAIN * self.calm:
            yield f"{self.calm_again} of {self.calm} pods that nothing urgent moved had been moved so within the hour"
        ended = len(self._times.minutes)
        launches = len(view.launches) - self._taken_by_others
        if launches > MOST_LAUNCHES * ended + SPARE:
            yield f"{launches} launches for {ended} nodes that were under our taint"

    def figures(self, view: WorldView) -> Mapping[str, float]:
        """Return the figures by name."""
        minutes = self._times.minutes
        return {
            EVICTED: self.evicted,
            AGAIN: self.again,
            CALM: self.calm,
            CALM_AGAIN: self.calm_again,
            LAUNCHES: len(view.launches),
            TAINTED: len(minutes),
            MINUTES: round(sum(minutes), 1),
            LONGEST: round(max(minutes, default=0.0), 1),
        }
