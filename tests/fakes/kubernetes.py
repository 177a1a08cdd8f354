"""One cluster's API in memory: taints, evictions that respect PodDisruptionBudgets, uid preconditions, Events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from leeward.errors import LeewardError
from leeward.model.attachment import VolumeAttachment
from leeward.model.blocked import Obstacle
from leeward.model.node import Node
from leeward.model.pod import Deployment, Pod, PodDisruptionBudget
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import EvictionRefusedError, Listed
from local.cluster.selectors import matcher
from tests.fakes.clock import FakeClock
from tests.fakes.nodes import FakeNodes

T = TypeVar("T")
EVENT_EVERY = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenEvent:
    """One Event as `kubectl get events` shows it."""

    about: str
    reason: str
    message: str
    warning: bool
    at: datetime


class FakeKubernetes(FakeNodes):
    """An evicted or deleted pod goes when its grace has passed (`settle` or the next list); `down` cuts the API off.

    `done` lists evictions and deletions as `evict ns/name` or `delete ns/name`, in order.
    """

    def __init__(
        self,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        budgets: Iterable[PodDisruptionBudget] = (),
        daemon_sets: Iterable[str] = (),
        clock: Clock | None = None,
    ) -> None:
        super().__init__(nodes)
        self.by_key = {pod.key: pod for pod in pods}
        self.budget_list = list(budgets)
        self.daemon_set_names = frozenset(daemon_sets)
        self.clock = clock or FakeClock()
        self.cni: Mapping[str, Any] | None = None
        self.volume_list: list[Mapping[str, Any]] = []
        self.raw: dict[Listed, list[Mapping[str, Any]]] = {}
        self.raw_events: list[dict[str, Any]] = []
        self.attachment_list: list[VolumeAttachment] = []
        self.deployment_by_key: dict[str, Deployment] = {}
        self.autoscaled_keys: set[str] = set()
        self.events: list[WrittenEvent] = []
        self.done: list[str] = []
        self.stuck: set[str] = set()  # keys of pods whose kubelet never confirms their end
        self.guarded: dict[str, Obstacle] = {}  # namespace -> what refuses every eviction and deletion there
        self.seconds_a_call: dict[str, float] = {}  # by method, "*" for all: how long an answer takes
        self.take_time: Callable[[float], object] = self.clock.sleep

    def pods_on(self, node: str, *, cached: bool = False) -> Sequence[Pod]:
        """Those bound to the node."""
        self._reach("pods_on")
        self.settle()
        return tuple(pod for pod in self.by_key.values() if pod.node == node)

    def pods(self) -> Sequence[Pod]:
        """All of them."""
        self._reach("pods")
        self.settle()
        return tuple(self.by_key.values())

    def budgets(self, namespace: str | None = None) -> Sequence[PodDisruptionBudget]:
        """All of them, or those of a namespace, with what they allow now."""
        self._reach("budgets")
        return tuple(one for one in self.budget_list if namespace in {None, one.namespace})

    def daemon_sets(self, *, among: frozenset[str] | None = None) -> frozenset[str]:
        """Those that exist, never remembered."""
        self._reach("daemon_sets")
        return self.daemon_set_names

    def aws_node(self) -> Mapping[str, Any] | None:
        """What the test put there."""
        self._reach("aws_node")
        return self.cni

    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """What the test put there."""
        self._reach("volumes")
        return tuple(self.volume_list)

    def read(
        self, what: Listed, parse: Callable[[Mapping[str, Any]], T], *, namespace: str | None = None
    ) -> Sequence[T]:
        """What the test put into `raw`, as far as it is of the namespace."""
        self._reach(f"read {what.value}")
        found = self.raw.get(what, ())
        return tuple(parse(raw) for raw in found if namespace in {None, raw["metadata"].get("namespace")})

    def seen_events(self, parse: Callable[[Mapping[str, Any]], T], fields: str) -> Sequence[T]:
        """What the test put into `raw_events`, as far as the field selector selects it."""
        self._reach("seen_events")
        chosen = matcher("events", fields=fields)
        return tuple(parse(raw) for raw in self.raw_events if chosen(raw))

    def attachments(self) -> Sequence[VolumeAttachment]:
        """What the test put there."""
        self._reach("attachments")
        return tuple(self.attachment_list)

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """By the name that its ReplicaSet's begins with."""
        self._reach("deployment_of")
        if pod.owner is None or pod.owner.kind != "ReplicaSet":
            return None
        return self.deployment_by_key.get(f"{pod.namespace}/{pod.owner.name.rpartition('-')[0]}")

    def deployment(self, namespace: str, name: str) -> Deployment | None:
        """One."""
        self._reach("deployment")
        return self.deployment_by_key.get(f"{namespace}/{name}")

    def autoscaled(self, namespace: str) -> frozenset[str]:
        """What the test put there, `namespace/name`."""
        self._reach("autoscaled")
        return frozenset(key.partition("/")[2] for key in self.autoscaled_keys if key.startswith(f"{namespace}/"))

    def scale(self, deployment: Deployment, replicas: int) -> bool:
        """At the version that was read; a test says when new pods are available."""
        self._reach("scale")
        with self._lock:
            now = self.deployment_by_key.get(deployment.key)
            if now is None or now.resource_version != deployment.resource_version:
                return False
            version = str(int(now.resource_version) + 1)
            self.put_deployment(replace(now, replicas=replicas, resource_version=version))
            self.done.append(f"scale {deployment.key} {replicas}")
            return True

    def put_deployment(self, deployment: Deployment) -> None:
        """One comes or changes."""
        self.deployment_by_key[deployment.key] = deployment

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """429 where a budget allows none; several budgets on one pod forbid it for good; gone counts as done."""
        self._reach("evict")
        self._admit(pod)
        with self._lock:
            now = self.by_key.get(pod.key)
            if now is None or now.uid != pod.uid or now.deletion is not None:
                return
            if not now.finished and now.phase != "Pending":
                self._pay(now)
            self._delete(now, now.grace_seconds if grace_seconds is None else grace_seconds)
            self.done.append(f"evict {pod.key}")

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """No budget is asked; a shorter grace brings the end of a deleted pod nearer."""
        self._reach("delete_pod")
        self._admit(pod)
        with self._lock:
            now = self.by_key.get(pod.key)
            if now is None or now.uid != pod.uid:
                return
            self._delete(now, now.grace_seconds if grace_seconds is None else grace_seconds)
            self.done.append(f"delete {pod.key}")

    def beside(self, work: Callable[[], None]) -> Callable[[float], bool]:
        """The effect comes at once; the answer after the time that the calls in it take."""
        began, take_time = self.clock.now(), self.take_time
        taken = [0.0]
        failure: Exception | None = None
        self.take_time = taken.append
        try:
            work()
        except Exception as error:  # noqa: BLE001  (it is raised where the work is waited for)
            failure = error
        finally:
            self.take_time = take_time
        ends = began + timedelta(seconds=sum(taken))

        def ended(seconds: float) -> bool:
            left = (ends - self.clock.now()).total_seconds()
            if left > 0:
                self.take_time(min(left, seconds))
            if left > seconds:
                return False
            if failure is not None:
                raise failure
            return True

        return ended

    def annotate_pods(self, pods: Sequence[Pod], annotations: Mapping[str, str | None]) -> Callable[[], None]:
        """Written when they are waited for, on pods of the same uid; lost where the API is away."""

        def write() -> None:
            for pod in pods:
                with suppress(LeewardError):
                    self._reach("annotate_pods")
                    self._annotate(pod, annotations)

        return write

    def _annotate(self, pod: Pod, annotations: Mapping[str, str | None]) -> None:
        with self._lock:
            now = self.by_key.get(pod.key)
            if now is not None and now.uid == pod.uid:
                merged = {key: text for key, text in {**now.annotations, **annotations}.items() if text is not None}
                self.by_key[pod.key] = replace(now, annotations=merged)

    def event(self, about: Node | Pod, *, reason: str, message: str, warning: bool, now: datetime) -> None:
        """At most one of an object and reason in ten minutes; lost where the API is away."""
        try:
            self._reach("event")
        except LeewardError:
            return
        name = about.key if isinstance(about, Pod) else about.name
        with self._lock:
            recent = (e for e in self.events if (e.about, e.reason) == (name, reason) and now - e.at < EVENT_EVERY)
            if next(recent, None) is None:
                self.events.append(WrittenEvent(about=name, reason=reason, message=message, warning=warning, at=now))

    def put_pod(self, pod: Pod) -> None:
        """A pod is bound or changes."""
        self.by_key[pod.key] = pod

    def set_allowed(self, budget: str, disruptions: int) -> None:
        """`namespace/name`: the disruption controller has counted again."""
        self.budget_list = [
            replace(old, disruptions_allowed=disruptions) if f"{old.namespace}/{old.name}" == budget else old
            for old in self.budget_list
        ]

    def settle(self) -> None:
        """Pods whose grace has passed are gone, except those in `stuck`."""
        now = self.clock.now()
        with self._lock:
            ended = [
                key
                for key, pod in self.by_key.items()
                if pod.deletion and pod.deletion <= now and key not in self.stuck
            ]
            for key in ended:
                del self.by_key[key]

    def _remove(self, node: str) -> None:
        """Its pods go with it (pod garbage collection)."""
        super()._remove(node)
        self.by_key = {key: pod for key, pod in self.by_key.items() if pod.node != node}

    def _admit(self, pod: Pod) -> None:
        if pod.namespace in self.guarded:
            raise EvictionRefusedError(self.guarded[pod.namespace].sentence)

    def _pay(self, pod: Pod) -> None:
        selecting = [budget for budget in self.budget_list if budget.selects(pod)]
        names = tuple(f"{budget.namespace}/{budget.name}" for budget in selecting)
        if len(selecting) > 1:
            raise EvictionRefusedError("this pod has more than one PodDisruptionBudget", names, permanent=True)
        for budget in selecting:
            if not pod.ready and (
                budget.always_allow_unhealthy or budget.current_healthy >= budget.desired_healthy > 0
            ):
                continue
            if budget.disruptions_allowed <= 0:
                raise EvictionRefusedError("it would violate the pod's disruption budget", names)
            self.set_allowed(names[0], budget.disruptions_allowed - 1)

    def _delete(self, pod: Pod, grace_seconds: int) -> None:
        ends = self.clock.now() + timedelta(seconds=grace_seconds)
        ends = min(ends, pod.deletion) if pod.deletion else ends
        self.by_key[pod.key] = replace(pod, deletion=ends)
