"""Annotation on the pods that have to leave a node: when the node ends, so that applications save their work by then.

Best effort. It is written while pods are evicted, never before, so it delays no eviction, and nothing depends on it."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from leeward.errors import LeewardError
from leeward.model.node import Node
from leeward.model.pod import Pod
from leeward.model.times import format_instant
from leeward.model.well_known import TERMINATES_AT
from leeward.ports.kubernetes import Kubernetes
from leeward.termination.drain_plan import DrainPlan

NOTICE = timedelta(minutes=2)  # with less, evictions need the API server, and SIGTERM comes before kubelet's refresh


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
        value = _value(plan)
        pods = [pod for pod in _leaving(plan) if self._wants(pod, value, plan, now)]
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


def _value(plan: DrainPlan) -> str:
    return format_instant(plan.deadline.replace(microsecond=0)) if plan.deadline is not None else ""


def _leaving(plan: DrainPlan) -> list[Pod]:
    pods = [eviction.pod for eviction in plan.evict] + [refused.pod for refused in plan.refuse]
    return [pod for pod in pods if pod.deletion is None and not pod.finished]
