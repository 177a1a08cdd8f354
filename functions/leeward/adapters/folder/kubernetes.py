"""Kubernetes API and clusters of a snapshot folder: the lists of its files, through the same parsers as live ones.

Decides what stands in for objects that `kubectl get` of the folder's commands does not print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from leeward.adapters.folder.reader import Folder, Refusing
from leeward.errors import NotInSnapshotError
from leeward.gc_pause import collector_paused
from leeward.model.attachment import VolumeAttachment, claims_of
from leeward.model.node import Node
from leeward.model.pod import Deployment, Pod, PodDisruptionBudget, deployment_named_by, pods_by_node
from leeward.placement.cni import DAEMON_SET
from leeward.policy.document import ClusterPolicies
from leeward.ports.kubernetes import Listed

if TYPE_CHECKING:
    from leeward.ports.kubernetes import Kubernetes
    from leeward.time_budget import TimeBudget

T = TypeVar("T")
FILE_OF: Mapping[Listed, str] = {
    Listed.NODES: "nodes",
    Listed.PODS: "pods",
    Listed.BUDGETS: "pdbs",
    Listed.DAEMON_SETS: "daemonsets",
    Listed.ATTACHMENTS: "volumeattachments",
    Listed.CLAIMS: "pvcs",
    Listed.VOLUMES: "pvs",
    Listed.STORAGE_CLASSES: "storageclasses",
    Listed.CSI_NODES: "csinodes",
    Listed.NAMESPACES: "namespaces",
}
LARGE = frozenset({Listed.NODES, Listed.PODS})  # a command reads them once: their raw objects are not kept


class FolderClusters:
    """`ports.kubernetes.Clusters` of a folder, which is one cluster, by whatever name it is asked for."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._kubernetes = cast("Kubernetes", FolderKubernetes(folder))

    def names(self) -> tuple[str, ...]:
        """Return the name that the command was given."""
        return (self._folder.cluster,)

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the policies of policy.yaml. Raises InvalidPolicyError."""
        del cluster
        return self._folder.policies

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return the reader of the folder's Kubernetes objects."""
        del cluster, within
        return self._kubernetes


class FolderKubernetes(Refusing):
    """Reads of `ports.kubernetes.Kubernetes`; writes raise NotInSnapshotError. Reads raise InvalidInputError."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def nodes(self) -> Sequence[Node]:
        """Return all nodes."""
        return self._nodes

    def node(self, name: str) -> Node | None:
        """Return one node, None when the file does not hold it."""
        return next((node for node in self._nodes if node.name == name), None)

    def pods_on(self, node: str, *, cached: bool = False) -> Sequence[Pod]:
        """Return the pods bound to a node."""
        del cached
        return self._pods_by_node.get(node, ())

    def pods(self) -> Sequence[Pod]:
        """Return all pods."""
        return self._pods

    def budgets(self, namespace: str | None = None) -> Sequence[PodDisruptionBudget]:
        """Return all PodDisruptionBudgets, or those of one namespace."""
        return [budget for budget in self._budgets if namespace in {None, budget.namespace}]

    def daemon_sets(self, *, among: frozenset[str] | None = None) -> frozenset[str]:
        """Return `namespace/name` of every DaemonSet, or of those `among` them."""
        found = frozenset(self.read(Listed.DAEMON_SETS, _key))
        return found if among is None else found & among

    def aws_node(self) -> Mapping[str, Any] | None:
        """Return the VPC CNI's DaemonSet; where the folder lacks it, one with the CNI's default settings."""
        namespace, _, name = DAEMON_SET.partition("/")
        assumed = {"metadata": {"namespace": namespace, "name": name}}
        return next((raw for raw in self._folder.elements("daemonsets") if _key(raw) == DAEMON_SET), assumed)

    def volumes(self) -> Sequence[Mapping[str, Any]]:
        """Return all PersistentVolumes, each with its claim, also where pvcs.json alone names it."""
        return self._volumes

    def read(
        self, what: Listed, parse: Callable[[Mapping[str, Any]], T], *, namespace: str | None = None
    ) -> Sequence[T]:
        """Return all objects of the resource, or of a namespace, each parsed. Raises NotInSnapshotError for a resource
        that has no file.
        """
        if what not in FILE_OF:
            raise NotInSnapshotError(f"{self._folder.directory}: found no {what.value}: a snapshot does not hold them")
        name = FILE_OF[what]
        raws = self._folder.each(name) if what in LARGE else self._folder.elements(name)
        with collector_paused():
            return [parse(raw) for raw in raws if namespace in {None, raw["metadata"].get("namespace", "default")}]

    def attachments(self) -> Sequence[VolumeAttachment]:
        """Return all VolumeAttachments."""
        return self._attachments

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """Return the Deployment that the pod's ReplicaSet names, as its pods show it: a folder holds no Deployments, so
        that each is assumed to be settled and to have as many replicas as pods.
        """
        name = deployment_named_by(pod)
        if name is None:
            return None
        count = self._pods_of[pod.namespace, name]
        return Deployment(
            namespace=pod.namespace,
            name=name,
            resource_version="",
            replicas=count,
            available=count,
            settled=True,
            recreate=False,
        )

    def autoscaled(self, namespace: str) -> frozenset[str]:
        """Return no Deployment: a folder holds no HorizontalPodAutoscalers."""
        del namespace
        return frozenset()

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        return tuple(self.read(Listed.NODES, Node.from_json))

    @cached_property
    def _pods(self) -> tuple[Pod, ...]:
        return tuple(self.read(Listed.PODS, Pod.from_json))

    @cached_property
    def _budgets(self) -> tuple[PodDisruptionBudget, ...]:
        return tuple(self.read(Listed.BUDGETS, PodDisruptionBudget.from_json))

    @cached_property
    def _attachments(self) -> tuple[VolumeAttachment, ...]:
        return tuple(self.read(Listed.ATTACHMENTS, VolumeAttachment.from_json))

    @cached_property
    def _pods_by_node(self) -> Mapping[str, Sequence[Pod]]:
        return pods_by_node(self._pods)

    @cached_property
    def _pods_of(self) -> Counter[tuple[str, str | None]]:
        return Counter((pod.namespace, deployment_named_by(pod)) for pod in self._pods if not pod.finished)

    @cached_property
    def _volumes(self) -> tuple[Mapping[str, Any], ...]:
        volumes = {raw["metadata"]["name"]: raw for raw in self._folder.elements("pvs")}
        claimed = claims_of(volumes.values())
        for name, claim in claims_of((), self._folder.elements("pvcs")).items():
            if name not in claimed:
                raw = volumes.get(name) or {"metadata": {"name": name}}
                namespace, _, of = claim.partition("/")
                spec = {**(raw.get("spec") or {}), "claimRef": {"namespace": namespace, "name": of}}
                volumes[name] = {**raw, "spec": spec}
        return tuple(volumes.values())


def _key(raw: Mapping[str, Any]) -> str:
    return f"{raw['metadata'].get('namespace', 'default')}/{raw['metadata']['name']}"
