"""`ports.kubernetes.Kubernetes` for one cluster: paths, preconditions, and the answers that count as done already.

Requests that are sent beside others: an admission webhook may keep one waiting for half a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from leeward.adapters.kubernetes import bodies
from leeward.adapters.kubernetes.answers import Answer, ApiRequest, as_error, refusal
from leeward.adapters.kubernetes.client import ClusterClient
from leeward.adapters.kubernetes.workloads import KnownDaemonSets, WorkloadApi
from leeward.errors import LeewardError, ObjectGoneError, RetryableError, ThrottledError
from leeward.model.node import (
    Node,
    Taint,
    annotated,
    cordoned,
    held,
    labelled,
    released,
    returned_to_service,
    stripped,
    tainted,
    uncordoned,
)
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.model.raw_fields import metadata_of, text
from leeward.ports.kubernetes import Listed
from leeward.time_budget import TimeBudget

if TYPE_CHECKING:
    from leeward.adapters.kubernetes.pod_annotations import PodAnnotations
    from leeward.model.attachment import VolumeAttachment

CONFLICTS = 8  # of a patch, each followed by a pause and a fresh read
POD_CONFLICTS = 3  # of an eviction: the next drain step retries, and other pods wait
EVICTION_SECONDS = 31.0  # an admission webhook may take 30, and the answer that follows names it
EVENT_SECONDS = 2.0
EVENTS_REST = timedelta(seconds=30)  # after an Event that was not answered, so that a slow server costs one time-out
MERGE_PATCH = "application/merge-patch+json"
_ROOTS = {
    **dict.fromkeys(Listed, "/api/v1"),
    Listed.BUDGETS: "/apis/policy/v1",
    Listed.DAEMON_SETS: "/apis/apps/v1",
    Listed.ATTACHMENTS: "/apis/storage.k8s.io/v1",
    Listed.STORAGE_CLASSES: "/apis/storage.k8s.io/v1",
    Listed.CSI_NODES: "/apis/storage.k8s.io/v1",
    Listed.ENDPOINT_SLICES: "/apis/discovery.k8s.io/v1",
}
T = TypeVar("T")


class Background:
    """Calls in threads of their own. The threads are daemons: none keeps a process alive."""

    def beside(self, work: Callable[[], None]) -> Callable[[float], bool]:
        """Begin the work; the returned function waits for so many seconds and tells whether it has ended."""
        return _Begun(work).ended


class _Begun:
    def __init__(self, work: Callable[[], None]) -> None:
        self._work, self._over = work, threading.Event()
        self._error: BaseException | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def ended(self, seconds: float) -> bool:
        if not self._over.wait(seconds):
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (it is raised where the work is waited for)
            self._error = error
        self._over.set()


class ClusterApi(WorkloadApi, Background):
    """API of one cluster. Every change is idempotent: by a precondition on version or uid, or by a deterministic name.
    Every list is consistent and paged. `event_lost` is called with a sentence for each Event that could not be written.
    """

    def __init__(
        self,
        client: ClusterClient,
        event_lost: Callable[[str], None] = lambda _: None,
        daemon_sets: KnownDaemonSets | None = None,
    ) -> None:
        super().__init__(client)
        self._event_lost = event_lost
        self._daemon_sets = daemon_sets or KnownDaemonSets(client.now)
        self._no_events_until: datetime | None = None

    def within(self, budget: TimeBudget) -> Self:
        """Return the same API over the same connections; calls end with the budget."""
        return type(self)(self._client.within(budget), self._event_lost, self._daemon_sets)

    def nodes(self) -> Sequence[Node]:
        """Read all nodes."""
        return self._client.list(ApiRequest(verb="list", resource="nodes", path="/api/v1/nodes"), Node.from_json)

    def node(self, name: str) -> Node | None:
        """Read one node, fresh."""
        answer = self._get("nodes", bodies.node_path(name))
        return None if answer is None else Node.from_json(answer)

    def pods_on(self, node: str, *, cached: bool = False) -> Sequence[Pod]:
        """Read the pods bound to a node; `cached`: from the API server's watch cache, in one page."""
        query = {"fieldSelector": f"spec.nodeName={node}", **({"resourceVersion": "0"} if cached else {})}
        return self._client.list(
            ApiRequest(verb="list", resource="pods", path="/api/v1/pods", query=query), Pod.from_json
        )

    def pods(self) -> Sequence[Pod]:
        """Read all pods, reduced as the pages arrive."""
        return self._client.list(ApiRequest(verb="list", resource="pods", path="/api/v1/pods"), Pod.from_json)

    def budgets(self, namespace: str | None = None) -> Sequence[PodDisruptionBudget]:
        """Read all PodDisruptionBudgets, or those of one namespace."""
        where = f"namespaces/{quote(namespace, safe='')}/" if namespace is not None else ""
        path = f"/apis/policy/v1/{where}poddisruptionbudgets"
        request = ApiRequest(verb="list", resource="poddisruptionbudgets", path=path)
        return self._client.list(request, PodDisruptionBudget.from_json)

    def daemon_sets(self, *, among: frozenset[str] | None = None) -> frozenset[str]:
        """Return `namespace/name` of every DaemonSet, or of those in `among`; they are remembered for five minutes."""
        request = ApiRequest(verb="list", resource="daemonsets", path="/apis/apps/v1/daemonsets")
        return self._daemon_sets.get(
            among, lambda: frozenset(self._client.list(request, _key)), self._daemon_set_exists
        )

    def _daemon_set_exists(self, key: str) -> bool:
        namespace, _, name = key.partition("/")
        where = f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}/daemonsets/{quote(name, safe='')}"
        return self._get("daemonsets", where) is not None

    def aws_node(self) -> Mapping[str, Any] | None:
        """Read the VPC CNI's DaemonSet."""
        return self._get("daemonsets", "/apis/apps/v1/namespaces/kube-system/daemonsets/aws-node")

    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """Read all PersistentVolumes, reduced as the pages arrive."""
        path = "/api/v1/persistentvolumes"
        return self._client.list(ApiRequest(verb="list", resource="persistentvolumes", path=path), bodies.volume)

    def read(
        self, what: Listed, parse: Callable[[Mapping[str, Any]], T], *, namespace: str | None = None
    ) -> Sequence[T]:
        """Read all objects of the resource, or of a namespace, parsed page by page."""
        where = f"namespaces/{quote(namespace, safe='')}/" if namespace is not None else ""
        path = f"{_ROOTS[what]}/{where}{what.value}"
        return self._client.list(ApiRequest(verb="list", resource=what.value, path=path), parse)

    def seen_events(self, parse: Callable[[Mapping[str, Any]], T], fields: str) -> Sequence[T]:
        """Read the Events that match the field selector, of all namespaces."""
        query = {"fieldSelector": fields}
        return self._client.list(ApiRequest(verb="list", resource="events", path="/api/v1/events", query=query), parse)

    def attachments(self) -> Sequence[VolumeAttachment]:
        """Read all VolumeAttachments, fresh."""
        from leeward.model.attachment import VolumeAttachment  # late: read at the end of a drain alone

        path = "/apis/storage.k8s.io/v1/volumeattachments"
        return self._client.list(
            ApiRequest(verb="list", resource="volumeattachments", path=path), VolumeAttachment.from_json
        )

    def label(self, node: Node, labels: Mapping[str, str]) -> Node:
        """Add missing labels; a repeat finds them there. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: labelled(current, labels))

    def annotate(self, node: Node, annotations: Mapping[str, str | None]) -> Node:
        """Overwrite or remove annotations; a repeat finds it done. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: annotated(current, annotations))

    def add_finalizer(self, node: Node, finalizer: str) -> Node:
        """Add the finalizer; a repeat finds it there. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: held(current, finalizer))

    def remove_finalizer(self, node: Node, finalizer: str) -> None:
        """Remove the finalizer; gone or replaced counts as done."""
        with suppress(ObjectGoneError):
            self._patch_node(node, lambda current: released(current, finalizer))

    def strip(self, node: Node, deployment: str) -> None:
        """Remove everything of Leeward; gone or replaced counts as done."""
        with suppress(ObjectGoneError):
            self._patch_node(node, lambda current: stripped(current, deployment))

    def taint(self, node: Node, taint: Taint, *, unschedulable: bool = True, exclude: bool = False) -> Node:
        """Taint, cordon, exclude; a repeat finds it done. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: tainted(current, taint, cordon=unschedulable, exclude=exclude))

    def untaint(self, node: Node, taint: Taint) -> Node:
        """Remove the taint and uncordon, unless another owner had cordoned the node before; a repeat finds nothing to
        do, and a drain that has begun since the node was read keeps both. Raises ObjectGoneError.
        """
        return self._patch_node(node, lambda current: returned_to_service(node, current, taint))

    def cordon(self, node: Node, by: str, *, exclude: bool = False) -> Node:
        """Cordon for the owner `by`; a repeat finds it done. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: cordoned(current, by, exclude=exclude))

    def uncordon(self, node: Node) -> Node:
        """Undo `cordon`; a repeat finds nothing to do. Raises ObjectGoneError."""
        return self._patch_node(node, uncordoned)

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Evict by the Eviction API; gone or replaced counts as done. Raises EvictionRefusedError."""
        body, path = bodies.eviction(pod, grace_seconds), f"{bodies.pod_path(pod)}/eviction"
        self._send_away(pod, _asked_once("create", "pods/eviction", "POST", path, body))

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete without checking a budget; gone or replaced counts as done. Raises EvictionRefusedError: admission
        webhooks and policies may refuse a deletion as well.
        """
        body = bodies.deletion(pod.uid, grace_seconds)
        self._send_away(pod, _asked_once("delete", "pods", "DELETE", bodies.pod_path(pod), body))

    def annotate_pods(self, pods: Sequence[Pod], annotations: Mapping[str, str | None]) -> Callable[[], None]:
        """Patch the pods in the background; the returned function waits for it."""
        return self._pod_annotations.write(self._client, pods, annotations)

    @cached_property
    def _pod_annotations(self) -> PodAnnotations:
        from leeward.adapters.kubernetes.pod_annotations import PodAnnotations  # late: few drains annotate

        return PodAnnotations(self._event_lost)

    def delete_node(self, node: Node) -> None:
        """Remove the Node object; gone or replaced counts as done."""
        body = bodies.deletion(node.uid)
        request = ApiRequest(
            verb="delete", resource="nodes", path=bodies.node_path(node.name), method="DELETE", body=body
        )
        answer = self._remove(request, lambda: self._node_is_gone(node), CONFLICTS)
        if answer is not None:
            raise as_error(answer, request, self._client.cluster)

    def event(self, about: Node | Pod, *, reason: str, message: str, warning: bool, now: datetime) -> None:
        """Write an Event; AlreadyExists is a repeat. An Event is for people, so nothing may depend on it: one that is
        refused or not answered within two seconds is lost, and `event_lost` is called.
        """
        if self._no_events_until is not None and now < self._no_events_until:
            return
        body = bodies.event(about, reason=reason, message=message, warning=warning, now=now)
        path = f"/api/v1/namespaces/{quote(body['metadata']['namespace'], safe='')}/events"
        request = replace(_asked_once("create", "events", "POST", path, body), read_seconds=EVENT_SECONDS)
        try:
            answer = self._client.send(request)
        except LeewardError as error:
            if isinstance(error, RetryableError):
                self._no_events_until = now + EVENTS_REST
            self._event_lost(f"Event {reason} about {about.name} is lost: {error}")
            return
        ending = any(cause.get("reason") == "NamespaceTerminating" for cause in answer.causes)
        if not (answer.ok or answer.status in {404, 409} or ending):
            self._event_lost(f"Event {reason} about {about.name} is lost: {answer.message} (HTTP {answer.status})")

    def _patch_node(self, node: Node, change: Callable[[Node], Node]) -> Node:
        """Patch the node at the version that was read; after a conflict read it again and recompute the change."""
        current = node
        for _ in range(CONFLICTS):
            wanted = change(current)
            if wanted == current:
                return current
            request = ApiRequest(
                verb="patch",
                resource="nodes",
                path=bodies.node_path(node.name),
                method="PATCH",
                body=bodies.node_patch(current, wanted),
                content_type=MERGE_PATCH,
            )
            answer = self._client.send(request)
            if answer.ok:
                return Node.from_json(answer.body)
            if answer.status != 409:
                raise as_error(answer, request, self._client.cluster)
            self._client.pause_after_conflict()
            current = self._same_node(node)
        raise ThrottledError(f"{self._client.cluster}: patch nodes {node.name}: {CONFLICTS} conflicts in a row")

    def _same_node(self, node: Node) -> Node:
        fresh = self.node(node.name)
        if fresh is None or fresh.uid != node.uid:
            raise ObjectGoneError(f"{self._client.cluster}: node {node.name} ({node.uid}) is not there any more")
        return fresh

    def _send_away(self, pod: Pod, request: ApiRequest) -> None:
        answer = self._remove(request, lambda: self._pod_is_gone(pod), POD_CONFLICTS)
        if answer is not None:
            raise refusal(answer, request, pod.namespace) or as_error(answer, request, self._client.cluster)

    def _remove(self, request: ApiRequest, gone: Callable[[], bool], tries: int) -> Answer | None:
        """Remove it; None when done. A conflict is the uid precondition or a write in between: a read decides which."""
        answer = self._client.send(request)
        for _ in range(tries - 1):
            if answer.status != 409:
                break
            if gone():
                return None
            self._client.pause_after_conflict()
            answer = self._client.send(request)
        return None if answer.ok or answer.status == 404 else answer

    def _pod_is_gone(self, pod: Pod) -> bool:
        raw = self._get("pods", bodies.pod_path(pod))
        return raw is None or raw["metadata"].get("uid") != pod.uid

    def _node_is_gone(self, node: Node) -> bool:
        fresh = self.node(node.name)
        return fresh is None or fresh.uid != node.uid


def _asked_once(verb: str, resource: str, method: str, path: str, body: Mapping[str, Any]) -> ApiRequest:
    """Build a request that fails at once rather than keep other requests waiting."""
    hint = f"an admission webhook on {resource} may be slow"
    request = ApiRequest(verb=verb, resource=resource, method=method, path=path, body=body, once=True, hint=hint)
    return replace(request, read_seconds=EVICTION_SECONDS)


def _key(raw: Mapping[str, Any]) -> str:
    meta = metadata_of(raw, "daemonset")
    return f"{text(meta.get('namespace'), 'default')}/{meta['name']}"
