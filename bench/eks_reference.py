"""EKS' update of a managed node group by its documentation alone, in the same simulated world.

Sources: Amazon EKS user guide, "Managed node update behavior" and "Managed node groups". Every pause is one that they
name; any other step takes no time, or one `TICK` where it has to be noticed.

Nodes are updated in batches: selecting up to the maximum unavailable is a step, and the steps are repeated when they
are done (an older revision numbers them: select up to the maximum, cordon the empty, request terminations, "Repeats
steps 6-8"). `by_slots` is kinder to EKS than its text: the next node starts as soon as the termination of one has been
requested. Where the text leaves it open, the faster reading is taken: the update does not wait until the group has
replaced a node, refused evictions are retried at each tick, and the group is done when it has its size again, though
its last nodes still boot.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from bench.upgrade_fleet import GROUP
from leeward.model.group import TERMINATING, HookResult, LifecycleHook
from leeward.ports.kubernetes import EvictionRefusedError
from local.cluster.objects import condition_of
from simulation.aws.compute import IN_SERVICE, SimInstance
from simulation.world import World

TICK = 1.0
DRAIN_TIME_OUT = 15 * 60.0  # "If the Pods don't leave the node within 15 minutes … fails with a PodEvictionFailure"
DRAIN = LifecycleHook(name="eks", group=GROUP, transition=TERMINATING, heartbeat_timeout=3600)
SETTLE = 60.0  # "It cordons the node after every Pod is evicted and waits for 60 seconds."


class PodEvictionFailure(RuntimeError):
    """Failure of the update because pods were not evicted in time."""


@dataclass(slots=True, kw_only=True)
class _Draining:
    member: SimInstance
    since: float
    empty: float | None = None


class EksUpdate:
    """Update of the world's only group. `done` when it has succeeded; `draining` are the names of nodes."""

    def __init__(self, world: World, at_once: int, seed: int, *, by_slots: bool = False) -> None:
        self._world, self._at_once, self._random = world, at_once, Random(f"{seed}/eks")
        self._by_slots = by_slots
        self._group = world.fleet.groups[GROUP]
        self._sizes = (self._group.desired, self._group.maximum)
        self._old = list(self._group.members.values())
        self._under_way: dict[str, _Draining] = {}
        self._step = self._scale_up
        self.done = False
        self.on_end: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Begin the set-up: "It creates a new Amazon EC2 launch template version …" and "updates the Auto Scaling
        group".
        """
        self._group.point_at(self._group.template.add("ami-00000000000000002"))
        self._world.timeline.every(TICK, self._tick, "EKS works")

    def draining(self) -> list[str]:
        """Nodes that count as unavailable and hold pods."""
        return [one.member.node for one in self._under_way.values()]

    def _tick(self) -> None:
        if not self.done:
            self._step()

    def _scale_up(self) -> None:
        """Scale up: "It increments the Auto Scaling Group's maximum size and desired size by the larger of" twice the
        zones and the maximum unavailable.
        """
        more = max(2 * len({one.zone for one in self._old}), self._at_once)
        self._group.maximum += more
        self._world.fleet.updated(self._group, self._group.desired + more)
        self._step = self._wait_for_nodes

    def _wait_for_nodes(self) -> None:
        """Wait for new nodes: "At least one new node is launched in every Availability Zone where the node exists.
        Every new node should be in Ready state." Then "It marks nodes as unschedulable".
        """
        new = self._new()
        zones = {one.zone for one in new}
        if len(self._group.staying) < self._group.desired or not all(map(self._is_ready, new)):
            return
        if zones >= {one.zone for one in self._old}:
            for one in self._old:
                self._world.cluster.patch("nodes", one.node, {"spec": {"unschedulable": True}})
            self._step = self._upgrade

    def _upgrade(self) -> None:
        """Upgrade nodes: "It randomly selects a node that needs to be upgraded, up to the maximum unavailable" …
        "repeats the previous upgrade steps until there are no nodes" of the earlier version.
        """
        now = self._world.timeline.now()
        for name, one in list(self._under_way.items()):
            if one.empty is not None and now - one.empty >= SETTLE:
                self._world.fleet.terminate(one.member, decrement=False)
                del self._under_way[name]
        if self._by_slots or not self._under_way:
            while self._old and len(self._under_way) < self._at_once:
                member = self._old.pop(self._random.randrange(len(self._old)))
                self._under_way[member.id] = _Draining(member=member, since=now)
        for one in self._under_way.values():
            self._drain(one, now)
        if not self._old and not self._under_way:
            self._step = self._scale_down

    def _drain(self, one: _Draining, now: float) -> None:
        """Drain one node: "It drains the Pods from the node"."""
        pods = self._world.kubernetes.pods_on(one.member.node)
        if not pods and one.empty is None:
            one.empty = now
        for pod in pods:
            if pod.deletion is None:
                with suppress(EvictionRefusedError):
                    self._world.kubernetes.evict(pod)
        if pods and now - one.since > DRAIN_TIME_OUT:
            raise PodEvictionFailure(f"{one.member.node}: {len(pods)} pods have not left")

    def _scale_down(self) -> None:
        """Scale down: "The scale down phase decrements the Auto Scaling group maximum size and desired size by one to
        return to values before the update started." One node at each tick; the group chooses which.
        """
        desired, maximum = self._sizes
        self._end_surplus()
        if self._group.desired > desired:
            self._group.hooks[DRAIN.name] = (DRAIN, HookResult.CONTINUE)
            self._group.maximum = max(self._group.maximum - 1, maximum)
            self._world.fleet.resize(self._group, self._group.desired - 1)
        elif len(self._group.members) == desired:
            self.done = True
            for heard in self.on_end:
                heard()

    def _end_surplus(self) -> None:
        """Terminate surplus nodes: "Amazon EKS automatically drains nodes using the Kubernetes API during terminations
        or updates." "Pod disruption budgets aren't respected when … reducing the desired node count."
        """
        for group, hook, instance in list(self._world.fleet.waiting):
            pods = self._world.kubernetes.pods_on(self._world.fleet.instances[instance].node)
            for pod in pods:
                if pod.deletion is None:
                    self._world.kubernetes.delete_pod(pod)
            if not pods:
                self._world.fleet.answer(group, hook, instance, HookResult.CONTINUE)

    def _new(self) -> list[SimInstance]:
        return [one for one in self._group.staying if one.version == self._group.version]

    def _is_ready(self, one: SimInstance) -> bool:
        node = self._world.cluster.store.find("nodes", one.node)
        condition = condition_of(node, "Ready") if node is not None else None
        return one.lifecycle == IN_SERVICE and condition is not None and condition["status"] == "True"
