"""Workloads of a cluster: the part of `ports.kubernetes.Kubernetes` about Deployments, and a cache of the DaemonSets.

Deployments are found by their pods and changed only through the scale subresource. A role that may patch a Deployment
can run any image under any service account of the namespace; one that may patch its scale can only set the replicas.
Each execution environment of a function caches for some minutes which DaemonSets exist."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from leeward.adapters.kubernetes.answers import ApiRequest, as_error
from leeward.adapters.kubernetes.client import ClusterClient
from leeward.errors import ObjectGoneError
from leeward.model.pod import Deployment, Pod, controller_of
from leeward.model.raw_fields import mapping, mappings, text

MERGE_PATCH = "application/merge-patch+json"
DAEMON_SET_TTL = timedelta(minutes=5)
MAX_SINGLE_READS = 8  # of DaemonSets; for more, one list is cheaper


class WorkloadApi:
    """Deployments and their scale. Reads are fresh; the one write is conditional on the version that was read."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """Return the Deployment of the pod's ReplicaSet; None if the pod has another owner or none."""
        if pod.owner is None or (pod.owner.api_version, pod.owner.kind) != ("apps/v1", "ReplicaSet"):
            return None
        replica_set = self._get("replicasets", f"{_apps(pod.namespace)}/replicasets/{quote(pod.owner.name, safe='')}")
        owner = controller_of(mappings(mapping(mapping(replica_set).get("metadata")).get("ownerReferences")))
        if owner is None or (owner.api_version, owner.kind) != ("apps/v1", "Deployment"):
            return None
        return self.deployment(pod.namespace, owner.name)

    def deployment(self, namespace: str, name: str) -> Deployment | None:
        """Read one Deployment, uncached; None if it does not exist."""
        raw = self._get("deployments", _deployment_path(namespace, name))
        return None if raw is None else Deployment.from_json(raw)

    def autoscaled(self, namespace: str) -> frozenset[str]:
        """Return the names of the Deployments that a HorizontalPodAutoscaler of the namespace scales."""
        path = f"/apis/autoscaling/v2/namespaces/{quote(namespace, safe='')}/horizontalpodautoscalers"
        request = ApiRequest(verb="list", resource="horizontalpodautoscalers", path=path)
        return frozenset(name for name in self._client.list(request, scaled_by) if name)

    def scale(self, deployment: Deployment, replicas: int) -> bool:
        """Set the replicas at the version that was read; return False if the Deployment is gone or has changed.

        Idempotent by the resource version. Raises ClusterUnreachableError, ThrottledError or AccessDeniedError.
        """
        request = ApiRequest(
            verb="patch",
            resource="deployments/scale",
            path=f"{_deployment_path(deployment.namespace, deployment.name)}/scale",
            method="PATCH",
            body={"metadata": {"resourceVersion": deployment.resource_version}, "spec": {"replicas": replicas}},
            content_type=MERGE_PATCH,
            once=True,
        )
        answer = self._client.send(request)
        if answer.status == 409:
            self._client.pause_after_conflict()
        if answer.status in {404, 409}:
            return False
        if not answer.ok:
            raise as_error(answer, request, self._client.cluster)
        return True

    def _get(self, resource: str, path: str) -> Mapping[str, Any] | None:
        try:
            return self._client.ask(ApiRequest(verb="get", resource=resource, path=path))
        except ObjectGoneError:
            return None


def scaled_by(autoscaler: Mapping[str, Any]) -> str:
    """Return the name of the Deployment that a HorizontalPodAutoscaler scales, empty if it scales another kind."""
    target = mapping(mapping(autoscaler.get("spec")).get("scaleTargetRef"))
    return text(target.get("name")) if target.get("kind") == "Deployment" else ""


def _apps(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{quote(namespace, safe='')}"


def _deployment_path(namespace: str, name: str) -> str:
    return f"{_apps(namespace)}/deployments/{quote(name, safe='')}"


class KnownDaemonSets:
    """Cache of the DaemonSets of one cluster.

    Kubernetes deletes the pods of a deleted DaemonSet, or removes their owner, so a stale entry at most leaves a pod on
    a node until the node ends. A DaemonSet that did not exist is not cached.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._seen: dict[str, datetime] = {}  # `namespace/name` -> when it was last read

    def get(
        self, among: frozenset[str] | None, list_all: Callable[[], frozenset[str]], exists: Callable[[str], bool]
    ) -> frozenset[str]:
        """Return `namespace/name` of each DaemonSet that exists.

        `among`: the ones to check, each read at most once in `DAEMON_SET_TTL`; None: all, read now. `list_all` and
        `exists` read the cluster.
        """
        now = self._now()
        seen = {name: at for name, at in self._seen.items() if now < at + DAEMON_SET_TTL}
        unknown = sorted(among - seen.keys()) if among is not None else ()
        if among is None or len(unknown) > MAX_SINGLE_READS:
            names = list_all()
            self._seen = dict.fromkeys(names, now)
            return names if among is None else names & among
        self._seen = seen | {name: now for name in unknown if exists(name)}
        return among & self._seen.keys()
