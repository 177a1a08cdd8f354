"""Access to the cluster as `leeward --cluster NAME` has it: EKS' endpoint, a token of the caller's own credentials."""

from collections.abc import Iterator, Mapping
from typing import Any

from leeward.adapters.aws.access import OwnCredentials
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.clusters import cluster_client
from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.wiring import SystemClock
from leeward.errors import ObjectGoneError

Object = Mapping[str, Any]
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "Node": "/api/v1/nodes",
}


class Kube:
    """Client that reads and writes plain objects."""

    def __init__(self, cluster: str, region: str) -> None:
        clients = AwsClients(region)
        self._client = cluster_client(clients, SystemClock(), OwnCredentials(clients), cluster=cluster, region=region)

    def version(self) -> str:
        """Return the version of the API server: `v1.33.1`."""
        return str(self._client.ask(ApiRequest(verb="get", resource="version", path="/version"))["gitVersion"])

    def may(self, verb: str, group: str, resource: str) -> bool:
        """Return whether the caller may do it in every namespace."""
        attributes = {"verb": verb, "group": group, "resource": resource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._client.ask(
            ApiRequest(verb="create", resource="selfsubjectaccessreviews", path=path, method="POST", body=body)
        )
        return bool((answer.get("status") or {}).get("allowed"))

    def objects(self, kind: str, selector: str, namespace: str = "") -> tuple[Object, ...]:
        """Return all objects of a kind whose labels the selector matches."""
        path = PATHS[kind].format(namespace=namespace)
        request = ApiRequest(verb="list", resource=kind, path=path, query={"labelSelector": selector})
        return self._client.list(request, lambda raw: raw)

    def read(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return one object, None if it does not exist."""
        path = f"{PATHS[kind].format(namespace=namespace)}/{name}"
        try:
            return self._client.ask(ApiRequest(verb="get", resource=kind, path=path))
        except ObjectGoneError:
            return None

    def create(self, thing: Object) -> None:
        """Create an object; an existing one stays as it is."""
        path = PATHS[thing["kind"]].format(namespace=thing["metadata"].get("namespace", ""))
        request = ApiRequest(verb="create", resource=thing["kind"], path=path, method="POST", body=thing)
        answer = self._client.send(request)
        if not answer.ok and answer.reason != "AlreadyExists":
            self._client.ask(request)  # raises it in words

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object; a missing one counts as deleted."""
        path = f"{PATHS[kind].format(namespace=namespace)}/{name}"
        try:
            self._client.ask(ApiRequest(verb="delete", resource=kind, path=path, method="DELETE"))
        except ObjectGoneError:
            return


def nodes_by_instance(nodes: tuple[Object, ...]) -> Iterator[tuple[str, Object]]:
    """Return Nodes by instance id."""
    for node in nodes:
        yield str((node.get("spec") or {}).get("providerID") or "").rsplit("/", 1)[-1], node


def is_ready(thing: Object) -> bool:
    """Return the Ready condition of a node or pod."""
    conditions = (thing.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
