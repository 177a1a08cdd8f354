"""Cluster Autoscaler beside the product: it grows a group for pods that do not fit and removes nodes half empty.

It scans every ten seconds, as the real one; it checks again only nodes where something has changed, so that a quiet
scan costs nothing. Source: its FAQ ("How does scale-up work?", "How does scale-down work?") and its flags' defaults."""

from collections.abc import Iterable, Iterator
from math import ceil
from random import Random

from local.cluster.nodes import NodeSpec, node_object
from local.cluster.objects import Obj, condition_of, controller_of, is_finished, name_of, node_of
from local.cluster.patches import PatchType
from local.cluster.quantities import pod_requests
from local.cluster.scheduling.feasibility import allocatable_of
from local.cluster.store import Change, ChangeType, Key
from simulation.aws.compute import IN_SERVICE, SimGroup, SimInstance
from simulation.emptying import Emptying, Manner, has_to_leave
from simulation.node_instances import instance_behind
from simulation.owners import set_desired, terminate
from simulation.plans import AutoscalerPlan, FleetPlan
from simulation.scale_down import TO_BE_DELETED, fit_elsewhere, nodes_needed, take, what_keeps
from simulation.scene import Scene, api_answers
from simulation.timeline import Streams

WHO = "Cluster Autoscaler"
SCAN_EVERY = 10.0  # --scan-interval
HALF = 0.5  # of cpu and of memory, requested: scale-down-utilization-threshold
EMPTY_AT_ONCE = 10  # max-empty-bulk-delete; nodes with pods go one at a time
MANNER = Manner(who=WHO, retry=10, patience=600, stubborn=True)  # max-graceful-termination-sec


class ClusterAutoscaler:
    """Autoscaler of each cluster that has one. `over`: it begins nothing any more, so that the world can become idle.
    `scan_every` in seconds.
    """

    def __init__(self, scene: Scene, plan: AutoscalerPlan, random: Random) -> None:
        self._scene, self._plan, self._random = scene, plan, random
        self._waiting: dict[Key, None] = {}
        self._changed: dict[str, None] = {}
        self._free: dict[str, dict[str, int]] = {}
        self._empty: set[str] = set()  # but for pods that stay
        self._look_at: dict[str, float] = {}  # half empty nodes: when to remove or check again
        self._removing: dict[str, SimInstance] = {}
        self._grown = float("-inf")
        self.over, self.scan_every = False, SCAN_EVERY
        scene.cluster.observe(self._observe)

    def begin(self) -> None:
        """Start scanning."""
        self._scene.timeline.every(self.scan_every, self._scan, "cluster autoscaler")

    def _observe(self, change: Change) -> None:
        """Record what to check; runs inside a write, so it does nothing else."""
        deleted = change.type is ChangeType.DELETED
        if change.resource == "nodes":
            self._changed[name_of(change.obj)] = None
        elif change.resource == "pods":
            if not deleted and _is_unschedulable(change.obj):
                self._waiting[change.key] = None
            else:
                self._waiting.pop(change.key, None)
            before = None if change.old is None else node_of(change.old)
            node = node_of(change.obj)
            if node and (deleted or node != before or is_finished(change.obj)):
                self._changed[node] = None

    def _scan(self) -> None:
        if self.over or not api_answers(self._scene):
            return
        changed, self._changed = self._changed, {}
        for name in changed:
            self._weigh(name)
        if self._waiting:
            self._grow()
        now = self._scene.timeline.now()
        for member in self._scene.fleet.instances.values():
            here = not member.joined and not member.leaving and not member.gone
            if here and now - member.launched >= self._plan.provision_seconds:
                self._scene.say(f"{WHO}: {member.id} has not registered")
                terminate(self._scene, member, WHO, decrement=True)
        if now - self._grown >= self._plan.after_growth_seconds:
            self._shrink(now)

    def _weigh(self, name: str) -> None:
        node = self._scene.cluster.store.find("nodes", name)
        self._empty.discard(name)
        if node is None:
            self._free.pop(name, None)
            self._look_at.pop(name, None)
            return
        allocatable = allocatable_of(node)
        free = dict(allocatable)
        for pod in self._scene.cluster.store.pods_on(name):
            if not is_finished(pod):
                take(free, pod_requests(pod))
        self._free[name] = free
        if not has_to_leave(self._scene.cluster, name):
            self._empty.add(name)
        if any(free[kind] <= allocatable[kind] * HALF for kind in ("cpu", "memory")):
            self._look_at.pop(name, None)
        elif name not in self._look_at:
            self._look_at[name] = self._scene.timeline.now() + self._plan.unneeded_seconds

    def _grow(self) -> None:
        """Grow a group for the pods that wait; not while nodes are on their way, since the pods may fit there."""
        if any(self._upcoming(group) for group in self._scene.fleet.groups.values()):
            return
        found = (self._scene.cluster.store.at("pods", key) for key in self._waiting)
        pods = [pod for pod in found if pod is not None and not _of_daemon_set(pod)]
        groups = [group for group in self._scene.fleet.groups.values() if group.desired < group.maximum]
        self._random.shuffle(groups)  # the expander "random", its default
        for group in groups:
            template = self._template(group)
            needed = nodes_needed(pods, template, allocatable_of(template))
            if needed and set_desired(self._scene, group, min(group.desired + needed, group.maximum), WHO):
                self._grown = self._scene.timeline.now()
                return

    def _upcoming(self, group: SimGroup) -> bool:
        return group.desired > len(group.staying) or any(not member.joined for member in group.staying)

    def _template(self, group: SimGroup) -> Obj:
        """Return a node as the group would launch it, in any of its zones."""
        zone = self._random.choice(list(group.plan.zones))
        spec = NodeSpec(name="template", zone=zone, instance_type=group.plan.instance_type, **group.registers)
        return node_object(spec, now="2026-01-01T00:00:00Z")

    def _shrink(self, now: float) -> None:
        draining = any(name not in self._empty for name in self._removing)
        for name in [name for name, at in self._look_at.items() if at <= now and name not in self._removing]:
            empty = name in self._empty
            if (draining and not empty) or len(self._removing) >= EMPTY_AT_ONCE:
                continue
            self._look_at[name] = now + self._plan.recheck_seconds
            member = self._removable(name)
            if member is not None:
                self._remove(name, member)
                draining = draining or not empty

    def _removable(self, name: str) -> SimInstance | None:
        node = self._scene.cluster.store.find("nodes", name) or {"spec": {}}
        member = self._scene.fleet.instances.get(instance_behind(node))
        if member is None or member.lifecycle != IN_SERVICE or member.gone:
            return None
        group = self._scene.fleet.groups[member.group]
        leaving = sum(other.group == member.group and not other.leaving for other in self._removing.values())
        if group.desired - leaving <= max(ceil(group.plan.size * self._plan.least), group.minimum):
            return None
        others = [n for n in self._scene.cluster.store.sorted("nodes") if name_of(n) not in {name, *self._removing}]
        if what_keeps(self._scene.cluster, node):
            return None
        return member if fit_elsewhere(has_to_leave(self._scene.cluster, name), others, self._free) else None

    def _remove(self, name: str, member: SimInstance) -> None:
        self._scene.say(f"{WHO} removes {name}")
        self._removing[name] = member
        self._taint(name, there=True)

        def done(empty: bool) -> None:
            del self._removing[name]
            if not (empty and terminate(self._scene, member, WHO, decrement=True)):
                self._taint(name, there=False)

        Emptying(self._scene, name, MANNER, done).begin()

    def _taint(self, name: str, *, there: bool) -> None:
        node = self._scene.cluster.store.find("nodes", name)
        if node is None:
            return
        taints = [taint for taint in node["spec"].get("taints") or () if taint["key"] != TO_BE_DELETED]
        if there:
            value = str(int(self._scene.timeline.now()))
            taints.append({"key": TO_BE_DELETED, "value": value, "effect": "NoSchedule"})
        self._scene.cluster.patch("nodes", name, {"spec": {"taints": taints}}, kind=PatchType.MERGE)


def _is_unschedulable(pod: Obj) -> bool:
    condition = condition_of(pod, "PodScheduled") or {}
    return node_of(pod) is None and condition.get("reason") == "Unschedulable" and not is_finished(pod)


def _of_daemon_set(pod: Obj) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["kind"] == "DaemonSet"


def autoscalers_of(scenes: Iterable[Scene], plans: Iterable[FleetPlan]) -> Iterator[ClusterAutoscaler]:
    """Yield the Cluster Autoscaler of each scene whose plan has one."""
    for scene, plan in zip(scenes, plans, strict=True):
        if plan.autoscaler is not None:
            yield ClusterAutoscaler(scene, plan.autoscaler, Streams(scene.seed).stream("autoscaler"))
