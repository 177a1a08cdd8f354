"""`ports.kubernetes.Kubernetes` on the cluster model itself, without HTTP: effect of each call as a client and an API
server produce it.

The requests, their preconditions and what counts as done are those of `leeward.adapters.kubernetes.api`; both pass the
same contract suite. It writes and never steps the model: the owner of the world lets the controllers catch up
(`Cluster.observe` reports when). Its deletions and removals are kept in `deletions` and `removals`, for the invariants.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from leeward.adapters.kubernetes import bodies
from leeward.adapters.kubernetes.answers import Answer, ApiRequest, as_error, refusal
from leeward.adapters.kubernetes.workloads import KnownDaemonSets
from leeward.errors import LeewardError, ObjectGoneError, ThrottledError
from leeward.model.attachment import VolumeAttachment
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
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Listed
from local.cluster.deletion import DeleteOptions
from local.cluster.model import Cluster
from local.cluster.objects import Obj, namespace_of, path_name
from local.cluster.patches import PatchType
from local.cluster.selectors import matcher
from simulation.journal import Journal
from simulation.node_instances import NodeInstances
from simulation.old_cache import OldCache
from simulation.parsed import Parsed
from simulation.removed_objects import Deletion, Eviction, Removal
from simulation.workload_calls import NAME, SimWorkloads, request_about

CONFLICTS = 5  # as the real client: of one change, each followed by a fresh read

R = TypeVar("R")


class SimKubernetes(SimWorkloads):
    """Kubernetes API of one cluster model. `disturb` is called with verb and resource (`list nodes`, `create
    pods/eviction`) before each request and may raise ClusterUnreachableError or ThrottledError. `sandbox` names the one
    that asks.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        disturb: Callable[[str], None] = lambda _: None,
        lose: Callable[[str], None] = lambda _: None,
        sandbox: Callable[[], str] = lambda: "",
    ) -> None:
        self.requests: set[tuple[str, str]] = set()  # (function, verb and resource), as `disturb` gets them

        def note(request: str) -> None:
            self.requests.add((sandbox().rpartition("-")[0], request))
            disturb(request)

        super().__init__(cluster, clock, note, lose)
        self._nodes = Parsed(cluster, "nodes", Node.from_json)
        self._budgets = Parsed(cluster, "poddisruptionbudgets", PodDisruptionBudget.from_json)
        self._pods = Parsed(cluster, "pods", Pod.from_json)
        self._read: dict[tuple[Listed, type], Parsed[Any]] = {}  # with the parser of that type that was last asked for
        self._sandbox, self.cache = sandbox, OldCache(cluster)
        self.before_taint: Callable[[Node], None] = lambda _node: None  # what happens in the last moment
        self._instances = NodeInstances(cluster)
        self._daemon_sets: dict[str, KnownDaemonSets] = {}
        cluster.observe(self._pods.forget)
        self.refusals = 0  # evictions that the API server did not allow
        self.deletions = Journal[Deletion]()
        self.evictions = Journal[Eviction]()
        self.removals = Journal[Removal]()
        self.listed: dict[str, float] = {}  # function -> when it last asked for the nodes

    def nodes(self) -> Sequence[Node]:
        """Return all nodes."""
        self.listed[self._sandbox().partition("-")[0]] = self._clock.now().timestamp()
        self._disturb("list nodes")
        return self._nodes.all()

    def node(self, name: str) -> Node | None:
        """Return one node, fresh."""
        self._disturb("get nodes")
        raw = self._cluster.store.find("nodes", name)
        return None if raw is None else Node.from_json(raw)

    def pods_on(self, node: str, *, cached: bool = False) -> Sequence[Pod]:
        """Return the pods bound to a node, by namespace and name; a read of the cache may show the past."""
        self._disturb("list pods")
        pods = self.cache.pods_on(node) if cached else self._cluster.store.pods_on(node)
        return self._pods.each(sorted(pods, key=path_name))

    def pods(self) -> Sequence[Pod]:
        """Return all pods."""
        self._disturb("list pods")
        return self._pods.all()

    def budgets(self, namespace: str | None = None) -> Sequence[PodDisruptionBudget]:
        """Return all PodDisruptionBudgets, or those of a namespace."""
        self._disturb("list poddisruptionbudgets")
        return [one for one in self._budgets.all() if namespace in {None, one.namespace}]

    def daemon_sets(self, *, among: frozenset[str] | None = None) -> frozenset[str]:
        """Return `namespace/name` of every DaemonSet, remembered by each sandbox as the client does."""
        known = self._daemon_sets.setdefault(self._sandbox(), KnownDaemonSets(self._clock.now))
        return known.get(among, self._list_daemon_sets, self._daemon_set_exists)

    def _daemon_set_exists(self, key: str) -> bool:
        self._disturb("get daemonsets")
        namespace, _, name = key.partition("/")
        return self._cluster.store.find("daemonsets", name, namespace) is not None

    def _list_daemon_sets(self) -> frozenset[str]:
        self._disturb("list daemonsets")
        return frozenset(path_name(raw) for raw in self._cluster.store.each("daemonsets"))

    def aws_node(self) -> Mapping[str, Any] | None:
        """Return the VPC CNI's DaemonSet."""
        self._disturb("get daemonsets")
        return self._cluster.store.find("daemonsets", "aws-node", "kube-system")

    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """Return all PersistentVolumes, cut down as by the client."""
        self._disturb("list persistentvolumes")
        return tuple(bodies.volume(raw) for raw in self._cluster.store.each("persistentvolumes"))

    def read(
        self, what: Listed, parse: Callable[[Mapping[str, Any]], R], *, namespace: str | None = None
    ) -> Sequence[R]:
        """Return all objects of the resource, or of a namespace, each parsed by `parse`."""
        self._disturb(f"list {what.value}")
        if namespace is not None:
            return [parse(raw) for raw in self._cluster.store.sorted(what.value) if namespace_of(raw) == namespace]
        key = what, type(parse)
        known = self._read.get(key)
        if known is None or known.parse != parse:
            known = self._read[key] = Parsed(self._cluster, what.value, parse)
        return known.all()

    def seen_events(self, parse: Callable[[Mapping[str, Any]], R], fields: str) -> Sequence[R]:
        """Return the Events that the selector selects."""
        self._disturb("list events")
        chosen = matcher("events", fields=fields)
        return tuple(parse(raw) for raw in self._cluster.store.sorted("events") if chosen(raw))

    def attachments(self) -> Sequence[VolumeAttachment]:
        """Return all VolumeAttachments."""
        self._disturb("list volumeattachments")
        return tuple(VolumeAttachment.from_json(raw) for raw in self._cluster.store.sorted("volumeattachments"))

    def label(self, node: Node, labels: Mapping[str, str]) -> Node:
        """Add the labels that are missing. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: labelled(current, labels))

    def annotate(self, node: Node, annotations: Mapping[str, str | None]) -> Node:
        """Overwrite or remove annotations. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: annotated(current, annotations))

    def add_finalizer(self, node: Node, finalizer: str) -> Node:
        """Add the finalizer. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: held(current, finalizer))

    def remove_finalizer(self, node: Node, finalizer: str) -> None:
        """Remove the finalizer; gone counts as done."""
        with suppress(ObjectGoneError):
            self._patch_node(node, lambda current: released(current, finalizer))

    def strip(self, node: Node, deployment: str) -> None:
        """Remove everything of ours from the node; gone counts as done."""
        with suppress(ObjectGoneError):
            self._patch_node(node, lambda current: stripped(current, deployment))

    def taint(self, node: Node, taint: Taint, *, unschedulable: bool = True, exclude: bool = False) -> Node:
        """Taint, cordon, exclude; a repeat finds it done. Raises ObjectGoneError."""
        self.before_taint(node)
        return self._patch_node(node, lambda current: tainted(current, taint, cordon=unschedulable, exclude=exclude))

    def untaint(self, node: Node, taint: Taint) -> Node:
        """Remove the taint and uncordon, unless a drain has begun since; a repeat finds nothing to do."""
        return self._patch_node(node, lambda current: returned_to_service(node, current, taint))

    def cordon(self, node: Node, by: str, *, exclude: bool = False) -> Node:
        """Cordon for the owner `by`; a repeat finds it done. Raises ObjectGoneError."""
        return self._patch_node(node, lambda current: cordoned(current, by, exclude=exclude))

    def uncordon(self, node: Node) -> Node:
        """Undo such a cordon; a repeat finds nothing to do. Raises ObjectGoneError."""
        return self._patch_node(node, uncordoned)

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Ask the model's Eviction rules; gone or replaced counts as done. Raises EvictionRefusedError."""
        options = DeleteOptions(uid=pod.uid, grace=grace_seconds)
        request = request_about("create", "pods/eviction", pod.key)
        self.addressed.append(pod.uid)

        def send_away() -> None:
            self._cluster.evict(pod.name, pod.namespace, options=options)
            self.evictions.append(Eviction(at=self._clock.now(), pod=pod, instance=self._instances.of(pod.node)))

        answer = self._remove(request, send_away, lambda: self._pod_is_gone(pod))
        if answer is not None:
            self.refusals += 1
            raise refusal(answer, request, pod.namespace) or as_error(answer, request, NAME)

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete without asking a budget; gone or replaced counts as done, and is not noted in `deletions`."""
        options = DeleteOptions(uid=pod.uid, grace=grace_seconds)
        request = request_about("delete", "pods", pod.key)
        self.addressed.append(pod.uid)

        def delete() -> None:
            self._cluster.delete("pods", pod.name, pod.namespace, options=options)
            given = pod.grace_seconds if grace_seconds is None else grace_seconds
            instance, own = self._instances.of(pod.node), pod.grace_seconds
            self.deletions.append(Deletion(at=self._clock.now(), pod=pod.key, instance=instance, own=own, given=given))

        answer = self._remove(request, delete, lambda: self._pod_is_gone(pod))
        if answer is not None:
            raise refusal(answer, request, pod.namespace) or as_error(answer, request, NAME)

    def delete_node(self, node: Node) -> None:
        """Remove the Node object; gone or replaced counts as done, and is not noted in `removals`."""
        request = request_about("delete", "nodes", node.name)
        self.addressed.append(node.uid)

        def delete() -> None:
            self._cluster.delete("nodes", node.name, options=DeleteOptions(uid=node.uid))
            self.removals.append(Removal(at=self._clock.now(), node=node.name, instance=node.instance_id))

        answer = self._remove(request, delete, lambda: self._node_is_gone(node))
        if answer is not None:
            raise as_error(answer, request, NAME)

    def event(self, about: Node | Pod, *, reason: str, message: str, warning: bool, now: datetime) -> None:
        """Write an Event of a deterministic name: one that is there already is a repeat. Lost where it fails."""
        body = bodies.event(about, reason=reason, message=message, warning=warning, now=now)
        namespace = str(body["metadata"]["namespace"])
        request = request_about("create", "events", namespace)
        self.addressed.append(about.uid)
        with suppress(LeewardError):
            self._send(request, lambda: self._cluster.create("events", body, namespace))

    def _patch_node(self, node: Node, change: Callable[[Node], Node]) -> Node:
        """Patch what was read, at the version that was read; after a conflict read again and recompute."""
        request, current = request_about("patch", "nodes", node.name), node
        self.addressed.append(node.uid)
        for _ in range(CONFLICTS):
            wanted = change(current)
            if wanted == current:
                return current
            answer = self._send(request, partial(self._write, node.name, bodies.node_patch(current, wanted)))
            if answer is None:
                raw = self._cluster.store.find("nodes", node.name)
                return wanted if raw is None else Node.from_json(raw)  # None: its last finalizer came off
            if answer.status != 409:
                raise as_error(answer, request, NAME)
            current = self._same_node(node)
        raise ThrottledError(f"{NAME}: {request}: {CONFLICTS} conflicts in a row")

    def _write(self, node: str, patch: Obj) -> None:
        self._cluster.patch("nodes", node, patch, kind=PatchType.MERGE)

    def _same_node(self, node: Node) -> Node:
        fresh = self.node(node.name)
        if fresh is None or fresh.uid != node.uid:
            raise ObjectGoneError(f"{NAME}: node {node.name} ({node.uid}) is not there any more")
        return fresh

    def _remove(self, request: ApiRequest, act: Callable[[], object], gone: Callable[[], bool]) -> Answer | None:
        """Remove an object; None when it is done. A conflict is the uid precondition, or a write that came in between:
        a fresh read decides.
        """
        for _ in range(CONFLICTS):
            answer = self._send(request, act)
            if answer is None or answer.status == 404:
                return None
            if answer.status != 409:
                return answer
            if gone():
                return None
        return answer

    def _pod_is_gone(self, pod: Pod) -> bool:
        self._disturb("get pods")
        raw = self._cluster.store.find("pods", pod.name, pod.namespace)
        return raw is None or raw["metadata"]["uid"] != pod.uid

    def _node_is_gone(self, node: Node) -> bool:
        fresh = self.node(node.name)
        return fresh is None or fresh.uid != node.uid
