"""Time that nodes are under our taint, and rule that nothing is kept there without progress and without a reason.

It looks once a minute. A pod that its budgets let go is no reason, but a critical one leaves after all others. An empty
node is no reason, unless a hook holds its instance, or EC2 or an operator has asked for it: those have a time of their
own."""

from collections.abc import Iterable, Iterator

from local.cluster.objects import Obj, path_name
from simulation.drain_times import DrainTimes
from simulation.drained import evictable
from simulation.facts import group_of, policy_of
from simulation.node_instances import instance_behind
from simulation.pace_rules import has_to_leave, holds_pods
from simulation.unasked_nodes import Unasked
from simulation.view import WorldView

EVERY = 60.0  # seconds
IDLE = 2400.0  # seconds: a pause between two attempts (15 minutes), a run of the reconciler, and a step that hangs
TROUBLES = 1200.0  # seconds after trouble with the API, in which drains are not judged


class TaintTimes:
    """Times of one run. `free`: pod of a node under our taint -> since when its budgets let it go. `minutes`: how long
    each node was under our taint whose taint or Node is gone.
    """

    def __init__(self, times: DrainTimes, unasked: Unasked) -> None:
        self.free: dict[str, float] = {}
        self.minutes: list[float] = []
        self._times, self._unasked = times, unasked
        self._since: dict[str, float] = {}  # node -> when its taint was first seen
        self._moved: dict[str, tuple[frozenset[str], float]] = {}  # node -> its pods, and since when they are these
        self._next = 0.0

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield nodes on which nothing moves although it could."""
        under = self._unasked.under
        if self._unasked.changed:
            self._follow(view.now)
        if view.now < self._next:
            return
        self._next = view.now + EVERY
        free: dict[str, float] = {}
        for name, node in under.items():
            yield from self._idle(name, node, free, view)
        self.free = free

    def _follow(self, now: float) -> None:
        self._unasked.changed = False
        for name in self._since.keys() - self._unasked.under.keys():
            self.minutes.append((now - self._since.pop(name)) / 60)
            self._moved.pop(name, None)
        for name in self._unasked.under:
            self._since.setdefault(name, now)

    def _idle(self, name: str, node: Obj, free: dict[str, float], view: WorldView) -> Iterator[str]:
        instance = instance_behind(node)
        policy = policy_of(view, group_of(view, instance))
        there = view.cluster.store.pods_on(name)
        pods = frozenset(path_name(pod) for pod in there if pod["metadata"].get("ownerReferences"))
        known, since = self._moved.get(name, (pods, view.now))
        since = view.now if known != pods else since
        self._moved[name] = pods, since
        if policy is None or not view.running(instance):
            return
        may_go = evictable(instance, self._times.with_flags(instance, policy.drain, view), view)
        may_go -= _of_later_waves(there)
        free.update({pod: self.free.get(pod, view.now) for pod in may_go})
        longest = min((free[pod] for pod in may_go), default=view.now)
        waits = max(longest if may_go else since, since, self._times.begun(instance, view) or view.now)
        if view.now - waits <= IDLE or view.troubled(TROUBLES) or not (may_go or self._is_empty(node, view)):
            return
        self._moved[name] = pods, float("inf")  # reported once
        kept = f"keeps {', '.join(sorted(may_go))}" if may_go else "is empty and keeps our taint"
        yield f"{name} ({instance}) {kept} for {view.now - waits:.0f} s"

    def _is_empty(self, node: Obj, view: WorldView) -> bool:
        """Return whether nothing is left to wait for: no pod, no hook, no announcement of EC2."""
        instance = instance_behind(node)
        held = any(waiting == instance for _, _, waiting in view.waiting)
        return not (held or holds_pods(node, view) or self._times.asked.of(instance))


def _of_later_waves(pods: Iterable[Obj]) -> set[str]:
    """Return the critical pods: they leave last, so that they stay while another pod that has to leave is there."""
    staying = [pod for pod in pods if has_to_leave(pod)]
    critical = {path_name(pod) for pod in staying if str(pod["spec"].get("priorityClassName")).startswith("system-")}
    return critical if len(critical) < len(staying) else set()
