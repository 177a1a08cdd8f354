"""A Kubernetes cluster as a scenario acts on it: the model in virtual time, or any API server that a kubeconfig names.

The product's client (or the simulation's) does what the product does; workloads are put in as their owner would."""

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from leeward.adapters.wiring import SystemClock
from leeward.errors import AccessDeniedError
from leeward.model.node import disruption_taint
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from local.cluster.deletion import DeleteOptions
from local.cluster.errors import ApiError
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.patches import PatchType
from local.cluster.settings import IGNORE_SIGTERM, ClusterSettings
from local.foreign.api import ApiClient
from local.foreign.kubeconfig import read
from simulation.kubernetes import SimKubernetes
from tests.fakes.clock import FakeClock

GRACE = 4  # seconds that each pod sits out
IMAGE = os.environ.get("LEEWARD_CONTRACT_IMAGE", "busybox")
STUBBORN = "trap '' TERM; while true; do sleep 1; done"
ADMISSION = "apis/admissionregistration.k8s.io/v1"
PATHS = {
    "deployments": "apis/apps/v1",
    "daemonsets": "apis/apps/v1",
    "deviceclasses": "apis/resource.k8s.io/v1",
    "resourceclaims": "apis/resource.k8s.io/v1",
    "poddisruptionbudgets": "apis/policy/v1",
    "clusterrolebindings": "apis/rbac.authorization.k8s.io/v1",
    "validatingadmissionpolicies": ADMISSION,
    "validatingadmissionpolicybindings": ADMISSION,
    "validatingwebhookconfigurations": ADMISSION,
}


CLUSTER_WIDE = frozenset(
    {
        "clusterrolebindings",
        "deviceclasses",
        "namespaces",
        "nodes",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)


class Reply(NamedTuple):
    """What the API server answers to a request of an administrator."""

    code: int
    body: Mapping[str, Any]
    warnings: Sequence[str] = ()
    content_type: str = "application/json"
    retry_after: int | None = None

    @property
    def reason(self) -> str:
        """The machine-readable word of a Status."""
        return str(self.body.get("reason", ""))

    @property
    def message(self) -> str:
        """The sentence of a Status."""
        return str(self.body.get("message", ""))


class ClusterWorld(Protocol):
    """`api` is the product's port. `namespace` is the scenario's own. `nodes`: two workers, nothing else on them."""

    api: Kubernetes
    namespace: str
    nodes: tuple[str, str]

    def create(self, resource: str, body: Mapping[str, Any]) -> None:
        """As the owner of a workload."""
        ...

    def post(
        self, resource: str, body: Mapping[str, Any], *, name: str = "", subresource: str = "", dry_run: bool = False
    ) -> Reply:
        """Create an object, or post to a subresource of one, as an administrator."""
        ...

    def patch(self, resource: str, name: str, body: Mapping[str, Any], *, subresource: str = "") -> Reply:
        """Merge patch, as an administrator."""
        ...

    def remove(self, resource: str, name: str, *, grace: int | None = None, uid: str | None = None) -> Reply:
        """Delete, as an administrator."""
        ...

    def pods(self) -> Sequence[Mapping[str, Any]]:
        """All of the namespace, as the API gives them."""
        ...

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Let time pass until it is true, and give its value."""
        ...


class SimulatedCluster:
    """The model, stepped from one due thing to the next."""

    namespace = "contract"
    nodes = ("node-a", "node-b")

    def __init__(self, disturb: Callable[[str], None] = lambda _: None) -> None:
        self._clock = FakeClock()
        self._model = Cluster(clock=self._now, settings=ClusterSettings())
        self._model.create("namespaces", {"metadata": {"name": self.namespace}})
        for name in self.nodes:
            self._model.add_node(NodeSpec(name=name, instance_id=f"i-{name[-1]}"))
        self.api: Kubernetes = SimKubernetes(self._model, self._clock, disturb)
        self._model.step(self._now())

    def create(self, resource: str, body: Mapping[str, Any]) -> None:
        self._model.create(resource, dict(body), self.namespace)

    def post(
        self, resource: str, body: Mapping[str, Any], *, name: str = "", subresource: str = "", dry_run: bool = False
    ) -> Reply:
        if subresource == "eviction":
            return _replied(lambda: self._model.evict(name, self.namespace, dry_run=dry_run), 201)
        space = self._space(resource)
        return _replied(lambda: self._model.create(resource, dict(body), space, dry_run=dry_run), 201)

    def patch(self, resource: str, name: str, body: Mapping[str, Any], *, subresource: str = "") -> Reply:
        space = self._space(resource)
        kind, part = PatchType.MERGE, subresource or None
        return _replied(lambda: self._model.patch(resource, name, dict(body), space, kind=kind, subresource=part))

    def remove(self, resource: str, name: str, *, grace: int | None = None, uid: str | None = None) -> Reply:
        options = DeleteOptions(grace=grace, uid=uid)
        return _replied(lambda: self._model.delete(resource, name, self._space(resource), options=options))

    def _space(self, resource: str) -> str | None:
        return None if resource in CLUSTER_WIDE else self.namespace

    def pods(self) -> Sequence[Mapping[str, Any]]:
        return [pod for pod in self._model.list("pods") if pod["metadata"]["namespace"] == self.namespace]

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        for _ in range(10_000):
            if value := condition():
                return value
            self._clock.advance(seconds=0.1)
            self._model.step(self._now())
        raise AssertionError(f"never came: {what}")

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _replied(act: Callable[[], Any], code: int = 200) -> Reply:
    try:
        return Reply(code, act() or {})
    except ApiError as refused:
        return Reply(refused.code, refused.status())


class ServedCluster:
    """Whatever the kubeconfig's current context names. docs/designs/local-stack.md says what that cluster needs."""

    pace = 0.05

    def __init__(self, kubeconfig: Path, patience: float) -> None:
        access = read(kubeconfig)
        self._patience, self._admin = patience, ApiClient(access)
        self.namespace = f"contract-{uuid.uuid4().hex[:8]}"
        self._others: list[str] = []
        self._where = Endpoint(url=access.url, ca=access.ca or None)
        self._client = self.client(access.token)
        self._call("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        try:
            if not access.token:
                self._client = self.client(self._token())
            self.api: Kubernetes = ClusterApi(self._client)
            self.nodes = self._workers()
        except BaseException:
            self._remove_own()
            raise

    def client(self, token: str, clock: Clock | None = None) -> ClusterClient:
        """Return the product's client of a user. It knows tokens alone, as EKS does."""
        return ClusterClient("contract", _KubeConfig(self._where, token), clock or SystemClock())

    def _token(self) -> str:
        """Return a token with the rights of an administrator, for a kubeconfig with a client certificate."""
        account = {"kind": "ServiceAccount", "name": "contract", "namespace": self.namespace}
        self.create("serviceaccounts", {"metadata": {"name": "contract"}})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": self.namespace}, "roleRef": role, "subjects": [account]}
        self.create("clusterrolebindings", binding)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = self.post("serviceaccounts", asked, name="contract", subresource="token").body["status"]["token"]
        self.until(lambda: self._is_allowed(token), "the binding of the service account counts")
        return str(token)

    def _is_allowed(self, token: str) -> bool:
        try:
            return bool(ClusterApi(self.client(token)).nodes())
        except AccessDeniedError:
            return False

    def _workers(self) -> tuple[str, str]:
        """Return two workers; cordon the others: a scenario about "the only free node" means it."""
        workers = [node.name for node in self.api.nodes() if node.ready and not node.unschedulable and not node.taints]
        assert len(workers) >= 2, (
            f"found the workers {workers}, expected two or more that are Ready, without taints and without pods of "
            "their own (docs/designs/local-stack.md, contract tests)"
        )
        for name in workers[2:]:
            self._cordon(name, unschedulable=True)
            self._others.append(name)
        return workers[0], workers[1]

    def create(self, resource: str, body: Mapping[str, Any]) -> None:
        self._call("POST", self._path(resource), body)

    def post(
        self,
        resource: str,
        body: Mapping[str, Any] | None,
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
    ) -> Reply:
        query = "?dryRun=All" if dry_run else ""
        return self._ask("POST", self._path(resource, name, subresource) + query, body)

    def patch(self, resource: str, name: str, body: Mapping[str, Any], *, subresource: str = "") -> Reply:
        path = self._path(resource, name, subresource)
        return self._ask("PATCH", path, body, content_type="application/merge-patch+json")

    def remove(self, resource: str, name: str, *, grace: int | None = None, uid: str | None = None) -> Reply:
        body: dict[str, Any] = {} if grace is None else {"gracePeriodSeconds": grace}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        return self._ask("DELETE", self._path(resource, name), body)

    def list(self, resource: str, query: str) -> Reply:
        """With a query of its own."""
        return self.get(f"{self._path(resource)}?{query}")

    def get(self, path: str) -> Reply:
        """Answer of the server for any path."""
        return self._ask("GET", path)

    def _path(self, *parts: str) -> str:
        resource = parts[0]
        group = PATHS.get(resource, "api/v1")
        space = "" if resource in CLUSTER_WIDE else f"namespaces/{self.namespace}/"
        return f"/{group}/{space}{'/'.join(part for part in parts if part)}"

    def pods(self) -> Sequence[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self._call("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return found

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + self._patience
        while not (value := condition()):
            assert time.monotonic() < deadline, f"never came: {what}"
            time.sleep(self.pace)
        return value

    def close(self) -> None:
        """Namespace and connections go; a taint that is left is removed."""
        for name in self.nodes:
            node = self.api.node(name)
            if node is not None:
                self.api.untaint(node, disruption_taint(node.disrupted_by or ""))
        self._remove_own()

    def _remove_own(self) -> None:
        for name in self._others:
            self._cordon(name, unschedulable=None)
        self.remove("clusterrolebindings", self.namespace)
        self._ask("DELETE", f"/api/v1/namespaces/{self.namespace}")
        self._client.close()
        self._admin.close()

    def _cordon(self, name: str, *, unschedulable: bool | None) -> None:
        self.patch("nodes", name, {"spec": {"unschedulable": unschedulable}})

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        reply = self._ask(method, path, body)
        assert reply.code < 300, reply.body
        return reply.body

    def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, content_type: str = "application/json"
    ) -> Reply:
        data = None if body is None else json.dumps(body).encode()
        answer = self._admin.send(method, path, data, {"content-type": content_type})
        kind = answer.headers.get("content-type", "").partition(";")[0]
        said = json.loads(answer.data) if kind == "application/json" else {"message": answer.data.decode()}
        rest = answer.headers.get("retry-after", "")
        return Reply(answer.status, said, answer.headers.getlist("warning"), kind, int(rest) if rest else None)


class _KubeConfig:
    """A way in that never changes."""

    def __init__(self, where: Endpoint, token: str) -> None:
        self._where, self._token = where, token

    def endpoint(self, *, fresh: bool = False) -> Endpoint:
        return self._where

    def token(self, *, fresh: bool = False) -> str:
        return self._token


def _template(app: str, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": "50m", "memory": "16Mi"}
    container = {"name": "main", "image": IMAGE, "command": ["sh", "-c", STUBBORN], "resources": {"requests": requests}}
    return {
        "metadata": {"labels": {"app": app}, "annotations": {IGNORE_SIGTERM: "true"}},
        "spec": {"terminationGracePeriodSeconds": GRACE, "containers": [container], **spec},
    }


def a_deployment(world: ClusterWorld, app: str = "web", *, replicas: int = 1) -> None:
    """Its pods on the two workers, where there is a choice one on each; all Ready."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    selector = {"matchLabels": {"app": app}}
    spec = {"replicas": replicas, "selector": selector, "template": _template(app, topologySpreadConstraints=[spread])}
    world.create("deployments", {"metadata": {"name": app}, "spec": spec})
    world.until(lambda: len(ready(world, app)) == replicas, f"{replicas} of {app} Ready")


def a_lone_pod(world: ClusterWorld, name: str, *, finalizers: Sequence[str] = ()) -> None:
    """A Ready pod that nothing replaces."""
    template = _template(name)
    metadata = {**template["metadata"], "name": name, "finalizers": list(finalizers)}
    world.create("pods", {"metadata": metadata, "spec": template["spec"]})
    world.until(lambda: name in ready(world, name), f"{name} Ready")


def a_daemon_set(world: ClusterWorld, app: str = "agent") -> None:
    """A pod on each worker, Ready."""
    spec = {"selector": {"matchLabels": {"app": app}}, "template": _template(app)}
    world.create("daemonsets", {"metadata": {"name": app}, "spec": spec})
    world.until(lambda: set(world.nodes) <= set(ready(world, app).values()), f"{app} on both workers")


def a_budget(world: ClusterWorld, app: str = "web", *, unavailable: int = 1) -> None:
    """A PodDisruptionBudget, counted."""
    spec = {"selector": {"matchLabels": {"app": app}}, "maxUnavailable": unavailable}
    world.create("poddisruptionbudgets", {"metadata": {"name": app}, "spec": spec})

    def counted() -> bool:
        return any(one.namespace == world.namespace and one.disruptions_allowed for one in world.api.budgets())

    world.until(counted, "the budget allows one")


def ready(world: ClusterWorld, app: str) -> dict[str, str]:
    """The Ready pods of an app that are not leaving, with their nodes."""
    found = {}
    for pod in world.pods():
        conditions = pod.get("status", {}).get("conditions", ())
        is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        if is_ready and pod["metadata"]["labels"]["app"] == app and "deletionTimestamp" not in pod["metadata"]:
            found[str(pod["metadata"]["name"])] = str(pod["spec"]["nodeName"])
    return found


def there(world: ClusterWorld, name: str) -> Mapping[str, Any] | None:
    """The pod, leaving or not; None when it is gone."""
    return next((pod for pod in world.pods() if pod["metadata"]["name"] == name), None)
