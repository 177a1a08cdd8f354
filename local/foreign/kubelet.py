"""Kubelets of the local EC2's nodes on the given control plane.

They start bound pods and end deleted ones as the emulated cluster's kubelets do, and renew the nodes' Leases, without
which the node lifecycle controller would take the nodes for lost. Containers never end by themselves: no Jobs.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import urllib3

from local.cluster.controllers.kubelet import run_containers, time_to_end
from local.cluster.errors import ApiError
from local.cluster.objects import (
    Obj,
    copied,
    is_deleting,
    is_ready,
    name_of,
    namespace_of,
    phase_of,
    uid_of,
)
from local.cluster.registry import is_local
from local.cluster.timestamps import rfc3339, rfc3339_micro
from local.foreign.api import MERGE, ApiClient
from local.foreign.mirror import Mirror

_log = logging.getLogger("leeward.local.foreign")
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_RENEW_SECONDS = 10.0  # a kubelet's interval
_PAUSE = 0.1


@dataclass(slots=True, kw_only=True)
class Kubelets:
    """Kubelets of all Ready local nodes, in one thread. `pod_start` in seconds; `scale`: share of its grace period that
    a pod needs to end.
    """

    api: ApiClient
    mirror: Mirror
    pod_start: float
    scale: float
    _due: dict[tuple[str, bool], float] = field(default_factory=dict)  # (pod's uid, whether it is being deleted)
    _renewed: dict[str, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(256))
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a pass in progress. Idempotent."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=15)

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE):
            self.work(time.time())

    def work(self, now: float) -> None:
        """Make one pass over the nodes and their pods. A refused or failed request is tried again in the next pass."""
        with self.mirror.lock:
            nodes = [node for node in self.mirror.store.each("nodes") if is_local(node) and is_ready(node)]
            pods = [(node, pod) for node in nodes for pod in self.mirror.store.pods_on(name_of(node))]
            alive = {uid_of(pod) for pod in self.mirror.store.each("pods")}
        self._due = {key: due for key, due in self._due.items() if key[0] in alive}
        for node in nodes:
            if now - self._renewed.get(uid_of(node), 0.0) >= _RENEW_SECONDS:
                self._attempt(self._renew, node, now)
        for node, pod in pods:
            if is_deleting(pod):
                if now >= self._due.setdefault((uid_of(pod), True), now + time_to_end(pod, self.scale)):
                    self._attempt(self._end, pod)
            elif phase_of(pod) == "Pending" and now >= self._due.setdefault((uid_of(pod), False), now + self.pod_start):
                self._attempt(self._begin, pod, node, now)

    def _attempt(self, act: Callable[..., None], *arguments: object) -> None:
        try:
            act(*arguments)
        except (ApiError, urllib3.exceptions.HTTPError) as error:
            if not isinstance(error, ApiError) or error.code not in {404, 409}:  # it has gone, or was replaced
                _log.warning("kubelet: %s", error)

    def _begin(self, pod: Obj, node: Obj, now: float) -> None:
        started = {**pod, "status": copied(pod.get("status") or {})}
        run_containers(started, node, pod_ip=self._address, now=rfc3339(now))
        body = {"metadata": {"uid": uid_of(pod)}, "status": started["status"]}
        self.api.call("PATCH", f"{_path(pod)}/status", body, kind=MERGE)

    def _end(self, pod: Obj) -> None:
        self.api.call("DELETE", _path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}})

    def _renew(self, node: Obj, now: float) -> None:
        name = name_of(node)
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": rfc3339_micro(now)}
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
        metadata = {"name": name, "ownerReferences": [owner]}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        try:
            self.api.call("PATCH", f"{_LEASES}/{name}", {"spec": spec}, kind=MERGE)
        except ApiError as refused:
            if refused.code != 404:
                raise
            self.api.call("POST", _LEASES, lease)
        self._renewed[uid_of(node)] = now

    def _address(self) -> str:
        number = next(self._numbers) % 65_000
        return f"10.100.{number // 256}.{number % 256}"


def _path(pod: Obj) -> str:
    return f"/api/v1/namespaces/{namespace_of(pod)}/pods/{name_of(pod)}"
