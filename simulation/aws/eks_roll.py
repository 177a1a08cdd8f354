"""EKS at work on a managed node group: surge, cordon, drain and terminate, scale down, in the simulated world.

Source: Amazon EKS user guide, "Managed node update behavior", phase by phase; a phase without a documented duration
takes one TICK."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from leeward.model.pod import Pod
from leeward.upgrade.waves.model import has_to_leave
from local.cluster.errors import ApiError
from local.cluster.model import Cluster
from local.cluster.objects import condition_of
from simulation.aws.compute import IN_SERVICE, SimGroup, SimInstance
from simulation.aws.fleet import SimFleet
from simulation.timeline import Timeline

TICK = 5.0
DRAIN_TIME_OUT = 15 * 60.0
JOIN_TIME_OUT = 20 * 60.0
SETTLE = 60.0
EXCLUDE = "node.kubernetes.io/exclude-from-external-load-balancers"


@dataclass(slots=True, kw_only=True)
class _Draining:
    member: SimInstance
    since: float
    empty: float | None = None


@dataclass(slots=True, kw_only=True)
class EksRoll:
    """One update. `size`: the desired and maximum size to which the group returns; `ended` takes EKS' errors, none when
    it has succeeded; `answers`: whether the Kubernetes API does.
    """

    fleet: SimFleet
    cluster: Cluster
    timeline: Timeline
    group: SimGroup
    size: tuple[int, int]
    at_once: int
    force: bool
    random: Random
    ended: Callable[[tuple[str, ...]], None]
    answers: Callable[[], bool] = lambda: True
    _began: float = 0.0
    _over: bool = False
    _draining: list[_Draining] = field(default_factory=list)
    _shrunk: tuple[float, int] | None = None  # when EKS last set the desired size, and to what
    _step: Callable[[], None] | None = None

    def begin(self, version: str) -> None:
        """Set up the update: the group launches that version of EKS' copy from now on."""
        self.group.point_at(version)
        self._began = self.timeline.now()
        self._step = self._scale_up
        self._again()

    def _again(self) -> None:
        self.timeline.after(TICK, self._tick, "EKS works")

    def _tick(self) -> None:
        if self._step is not None and self.answers():
            self._step()
        if not self._over:
            self._again()

    def _end(self, *errors: str) -> None:
        self._over = True
        self.ended(errors)

    def _scale_up(self) -> None:
        desired, maximum = self.size
        more = max(2 * len({one.zone for one in self._old()}), self.at_once)
        self.group.maximum = max(self.group.maximum, maximum + more)
        if self.group.desired < desired + more:
            self.fleet.updated(self.group, desired + more)
        self._step = self._wait_for_nodes

    def _wait_for_nodes(self) -> None:
        """Wait for a new node in each zone with old ones, every new one Ready with EKS' labels; then cordon the old
        ones.
        """
        new, old = self._new(), self._old()
        ready = len(self.group.staying) >= self.group.desired and all(map(self._is_ready, new))
        if ready and {one.zone for one in new} >= {one.zone for one in old}:
            for one in old:
                patch = {"metadata": {"labels": {EXCLUDE: "true"}}, "spec": {"unschedulable": True}}
                self._patch(one, patch)
            self._step = self._upgrade
        elif self.timeline.now() - self._began > JOIN_TIME_OUT:
            late = ", ".join(one.id for one in new if not self._is_ready(one))
            self._end(f"NodeCreationFailure: Instances failed to join the kubernetes cluster ({late})")

    def _upgrade(self) -> None:
        """Drain and terminate random nodes, as many as it may take at once, until no old one is left."""
        now = self.timeline.now()
        for one in list(self._draining):
            if one.member.leaving or (one.empty is not None and now - one.empty >= SETTLE):
                self.fleet.terminate(one.member, decrement=False)
                self._draining.remove(one)
        taken = {one.member.id for one in self._draining}
        waiting = [one for one in self._old() if one.id not in taken]
        while waiting and len(self._draining) < self.at_once:
            self._draining.append(_Draining(member=waiting.pop(self.random.randrange(len(waiting))), since=now))
        for one in self._draining:
            if not self._drain(one, now):
                said = "PodEvictionFailure: Reached max retries while trying to evict pods from nodes in node group"
                self._end(f"{said} ({one.member.node})")
                return
        if not self._draining:
            self._step = self._scale_down

    def _drain(self, one: _Draining, now: float) -> bool:
        """Evict the pods of one node. False when its time is over and the update is not forced."""
        pods = list(self._pods(one.member.node))
        if not pods and one.empty is None:
            one.empty = now
        late = now - one.since > DRAIN_TIME_OUT
        if pods and late and not self.force:
            return False
        for pod in pods:
            try:
                if late:
                    self.cluster.delete("pods", pod.name, pod.namespace)
                elif pod.deletion is None:
                    self.cluster.evict(pod.name, pod.namespace)
            except ApiError:
                continue  # a budget, or it is gone: the next tick finds out
        return True

    def _scale_down(self) -> None:
        """Shrink the group one instance at a time; the group chooses which one leaves, and its hooks hold it. Where
        others scale the group up in between EKS ends without bringing it back to its size.
        """
        (desired, maximum), now = self.size, self.timeline.now()
        since, last = self._shrunk or (now, self.group.desired)
        if self.group.desired > desired and self.group.desired <= last:
            self.group.maximum = max(self.group.maximum - 1, maximum)
            self.fleet.resize(self.group, self.group.desired - 1)
            self._shrunk = now, self.group.desired
        elif self.group.desired > last or len(self.group.members) <= self.group.desired or now - since > JOIN_TIME_OUT:
            self.group.maximum = max(maximum, self.group.desired)
            self._end()

    def _old(self) -> list[SimInstance]:
        return [one for one in self.group.staying if one.version != self.group.version]

    def _new(self) -> list[SimInstance]:
        return [one for one in self.group.staying if one.version == self.group.version]

    def _is_ready(self, one: SimInstance) -> bool:
        node = self.cluster.store.find("nodes", one.node)
        condition = condition_of(node, "Ready") if node is not None else None
        labelled = node is not None and "eks.amazonaws.com/nodegroup" in node["metadata"].get("labels", {})
        return labelled and one.lifecycle == IN_SERVICE and condition is not None and condition["status"] == "True"

    def _pods(self, node: str) -> Iterable[Pod]:
        raw = (one for one in self.cluster.store.each("pods") if one["spec"].get("nodeName") == node)
        return (pod for pod in map(Pod.from_json, raw) if has_to_leave(pod))

    def _patch(self, one: SimInstance, patch: dict[str, Any]) -> None:
        if self.cluster.store.find("nodes", one.node) is not None:
            self.cluster.patch("nodes", one.node, patch)
