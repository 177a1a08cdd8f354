"""Ports to the clusters that this deployment serves and to the Kubernetes API of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from leeward.model.attachment import VolumeAttachment
    from leeward.model.node import Node, Taint
    from leeward.model.pod import Deployment, Pod, PodDisruptionBudget
    from leeward.policy.document import ClusterPolicies
    from leeward.time_budget import TimeBudget

T = TypeVar("T")


class Clusters(Protocol):
    """The clusters that this deployment serves."""

    def names(self) -> tuple[str, ...]:
        """Return the names in the settings' order."""
        ...

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the policies written for the cluster, cached for 60 s. Raises InvalidPolicyError."""
        ...

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return a client for the cluster's API, which connects at its first use. `within` bounds all of its calls
        together: one that would last longer raises ClusterUnreachableError.
        """
        ...


class Listed(StrEnum):
    """Resources that can be read raw."""

    NODES = "nodes"
    PODS = "pods"
    BUDGETS = "poddisruptionbudgets"
    DAEMON_SETS = "daemonsets"
    ATTACHMENTS = "volumeattachments"
    CLAIMS = "persistentvolumeclaims"
    VOLUMES = "persistentvolumes"
    STORAGE_CLASSES = "storageclasses"
    CSI_NODES = "csinodes"
    NAMESPACES = "namespaces"
    SERVICES = "services"
    ENDPOINT_SLICES = "endpointslices"


class EvictionRefusedError(Exception):
    """Refusal to evict this one pod now; other pods can be evicted.

    `budgets`: the PodDisruptionBudgets that forbid it, `namespace/name`, where they were named; empty where an
    admission webhook, a policy or the server itself refuses it or fails (the message is an `Obstacle`'s sentence).
    `permanent`: the API can never allow it as things stand (several budgets select the pod).
    """

    def __init__(self, message: str, budgets: tuple[str, ...] = (), *, permanent: bool = False) -> None:
        super().__init__(message)
        self.budgets = budgets
        self.permanent = permanent


class Workloads(Protocol):
    """Deployments whose last replica needs a second one before it is evicted."""

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """Return the Deployment behind the pod's ReplicaSet, read fresh; None where there is none."""
        ...

    def deployment(self, namespace: str, name: str) -> Deployment | None:
        """Return one Deployment, read fresh; None when it does not exist."""
        ...

    def autoscaled(self, namespace: str) -> frozenset[str]:
        """Return the names of the namespace's Deployments whose replicas a HorizontalPodAutoscaler decides."""
        ...

    def scale(self, deployment: Deployment, replicas: int) -> bool:
        """Write its replicas if it is unchanged since it was read; False when it has changed or is gone."""
        ...


class Kubernetes(Workloads, Protocol):
    """One cluster's API. Raises ClusterUnreachableError, ThrottledError, AccessDeniedError, ObjectGoneError.

    Lists are consistent: they hold everything that was written before. They are parsed (and trimmed) page by page,
    because a whole cluster's raw pods would not fit into a function's memory.
    """

    def nodes(self) -> Sequence[Node]:
        """Return all nodes."""
        ...

    def node(self, name: str) -> Node | None:
        """Return one node, read fresh; None when it does not exist."""
        ...

    def pods_on(self, node: str, *, cached: bool = False) -> Sequence[Pod]:
        """Return the pods bound to a node. `cached`: from the API server's watch cache, which may be a moment old (and
        costs it little): such an answer must not decide that a node is empty.
        """
        ...

    def pods(self) -> Sequence[Pod]:
        """Return all pods."""
        ...

    def budgets(self, namespace: str | None = None) -> Sequence[PodDisruptionBudget]:
        """Return all PodDisruptionBudgets, or those of one namespace."""
        ...

    def daemon_sets(self, *, among: frozenset[str] | None = None) -> frozenset[str]:
        """Return `namespace/name` of every apps/v1 DaemonSet that exists, or of those `among` them: then an answer that
        one exists may be five minutes old.
        """
        ...

    def aws_node(self) -> Mapping[str, Any] | None:
        """Return the VPC CNI's DaemonSet kube-system/aws-node as raw JSON, None when it does not exist."""
        ...

    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """Return all PersistentVolumes as raw JSON: name, labels, claim, node affinity and phase."""
        ...

    def read(
        self, what: Listed, parse: Callable[[Mapping[str, Any]], T], *, namespace: str | None = None
    ) -> Sequence[T]:
        """Return all objects of the resource, or those of one namespace, each parsed from its raw JSON. `parse` is
        pure: a list that expires is parsed again, and an adapter may keep the result of an unchanged object for the
        next call with an equal `parse`.
        """
        ...

    def seen_events(self, parse: Callable[[Mapping[str, Any]], T], fields: str) -> Sequence[T]:
        """Return the retained Events that the field selector selects, raw, parsed as their pages come. Needs the
        caller's own access: Leeward's roles write Events and read none.
        """
        ...

    def attachments(self) -> Sequence[VolumeAttachment]:
        """Return all VolumeAttachments."""
        ...

    def label(self, node: Node, labels: Mapping[str, str]) -> Node:
        """Add those labels that the node lacks; others are never changed. Raises ObjectGoneError."""
        ...

    def annotate(self, node: Node, annotations: Mapping[str, str | None]) -> Node:
        """Overwrite these annotations, None: remove that one. Writes nothing when all are set already. Raises
        ObjectGoneError.
        """
        ...

    def add_finalizer(self, node: Node, finalizer: str) -> Node:
        """Add the finalizer; writes nothing when it is there, or when the node is being deleted. Raises
        ObjectGoneError.
        """
        ...

    def remove_finalizer(self, node: Node, finalizer: str) -> None:
        """Remove the finalizer, those of others stay; a node that is being deleted may then disappear. Gone counts as
        done.
        """
        ...

    def strip(self, node: Node, deployment: str) -> None:
        """Remove everything that Leeward has put on the node, in one patch. Gone counts as done."""
        ...

    def taint(self, node: Node, taint: Taint, *, unschedulable: bool = True, exclude: bool = False) -> Node:
        """Taint and cordon, with `exclude` also exclude from external load balancers; writes nothing when all is there.
        Retries a conflict on a fresh copy. A cordon or a label that was there before belongs to another owner.

        Raises ObjectGoneError when the node no longer exists.
        """
        ...

    def untaint(self, node: Node, taint: Taint) -> Node:
        """Remove the taint, uncordon and include in load balancers again, unless another owner had cordoned or excluded
        the node before. Without the taint only Leeward's own cordon and label are removed; nothing is removed with a
        taint of the same key and another value, which has another owner, or where a drain has excluded the node from
        load balancers since `node` was read. Raises ObjectGoneError.
        """
        ...

    def cordon(self, node: Node, by: str, *, exclude: bool = False) -> Node:
        """Cordon without a taint, noting who did; with `exclude` also exclude from external load balancers. A cordon or
        label that is there already stays its owner's. Raises ObjectGoneError.
        """
        ...

    def uncordon(self, node: Node) -> Node:
        """Undo `cordon`, and nothing that others did. Raises ObjectGoneError."""
        ...

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Call the Eviction API with the pod's uid as precondition; a pod that is gone or replaced counts as done.
        Without grace seconds the pod's own apply.

        Raises EvictionRefusedError when a PodDisruptionBudget forbids it now, or an admission webhook, a policy or the
        server refuses this pod or fails; ClusterUnreachableError only where no answer came.
        """
        ...

    def delete_pod(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete without checking any budget (force); uid precondition; gone counts as done. Raises
        EvictionRefusedError where an admission webhook, a policy or the server refuses this pod or fails.
        """
        ...

    def beside(self, work: Callable[[], None]) -> Callable[[float], bool]:
        """Begin work that calls this API, beside other calls; return a function that waits for at most so many seconds
        and tells whether the work has ended. The function raises the error of the work.
        """
        ...

    def annotate_pods(self, pods: Sequence[Pod], annotations: Mapping[str, str | None]) -> Callable[[], None]:
        """Begin to overwrite these annotations of the pods, None: remove that one; return a function that waits until
        all are written. Neither delays the caller by more than two seconds or raises: a pod that cannot be written
        keeps its annotations, and one that is gone or replaced counts as done.
        """
        ...

    def delete_node(self, node: Node) -> None:
        """Remove the Node object, uid precondition; gone counts as done."""
        ...

    def event(self, about: Node | Pod, *, reason: str, message: str, warning: bool, now: datetime) -> None:
        """Write an Event; one of the same object and reason is written again at most once in ten minutes. Best effort:
        never raises and takes two seconds at most.
        """
        ...
