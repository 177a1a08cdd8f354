"""Calls to the cluster model, and those of `ports.kubernetes.Kubernetes` about Deployments (see `kubernetes.py`)."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from leeward.adapters.kubernetes import bodies
from leeward.adapters.kubernetes.answers import Answer, ApiRequest, as_error
from leeward.adapters.kubernetes.workloads import scaled_by
from leeward.errors import LeewardError
from leeward.model.pod import Deployment, Pod, controller_of
from leeward.ports.clock import Clock
from local.cluster.errors import ApiError
from local.cluster.model import Cluster
from local.cluster.patches import PatchType
from simulation.journal import Journal

NAME = "the simulated cluster"


class SimWorkloads:
    """Calls about workloads: `disturb` before each request, `lose` after each that writes; both may raise."""

    def __init__(
        self, cluster: Cluster, clock: Clock, disturb: Callable[[str], None], lose: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._disturb, self._lose = disturb, lose
        self.addressed = Journal[str]()  # uids of the nodes and pods that writes were about, also those without effect
        self.admission: Callable[[ApiRequest], Answer | None] = lambda _: None  # refuses a write before its effect

    def deployment_of(self, pod: Pod) -> Deployment | None:
        """Return the pod's Deployment by way of its ReplicaSet."""
        if pod.owner is None or (pod.owner.api_version, pod.owner.kind) != ("apps/v1", "ReplicaSet"):
            return None
        self._disturb("get replicasets")
        raw = self._cluster.store.find("replicasets", pod.owner.name, pod.namespace)
        owner = controller_of((raw or {}).get("metadata", {}).get("ownerReferences") or ())
        return self.deployment(pod.namespace, owner.name) if owner and owner.kind == "Deployment" else None

    def deployment(self, namespace: str, name: str) -> Deployment | None:
        """Return one Deployment, fresh."""
        self._disturb("get deployments")
        raw = self._cluster.store.find("deployments", name, namespace)
        return None if raw is None else Deployment.from_json(raw)

    def autoscaled(self, namespace: str) -> frozenset[str]:
        """Return the Deployments that a HorizontalPodAutoscaler of the namespace names."""
        self._disturb("list horizontalpodautoscalers")
        found = self._cluster.store.sorted("horizontalpodautoscalers")
        return frozenset(scaled_by(raw) for raw in found if raw["metadata"]["namespace"] == namespace) - {""}

    def scale(self, deployment: Deployment, replicas: int) -> bool:
        """Set the replicas, at the version that was read; return whether it was written."""
        patch = {"metadata": {"resourceVersion": deployment.resource_version}, "spec": {"replicas": replicas}}
        request = request_about("patch", "deployments/scale", deployment.key)

        def write() -> None:
            name, space = deployment.name, deployment.namespace
            self._cluster.patch("deployments", name, patch, space, kind=PatchType.MERGE, subresource="scale")

        answer = self._send(request, write)
        if answer is not None and answer.status not in {404, 409}:
            raise as_error(answer, request, NAME)
        return answer is None

    def beside(self, work: Callable[[], None]) -> Callable[[float], bool]:
        """Do the work when it is waited for first: it takes no time here."""
        left = [work]

        def ended(_seconds: float) -> bool:
            while left:
                left.pop()()
            return True

        return ended

    def annotate_pods(self, pods: Sequence[Pod], annotations: Mapping[str, str | None]) -> Callable[[], None]:
        """Return a function that patches the pods: an API server may serve such a request last of all."""

        def write() -> None:
            for pod in pods:
                self.addressed.append(pod.uid)
                with suppress(LeewardError):
                    self._send(
                        request_about("patch", "pods/status", pod.key), partial(self._annotate, pod, annotations)
                    )

        return write

    def _annotate(self, pod: Pod, annotations: Mapping[str, str | None]) -> None:
        patch = bodies.pod_annotations(pod, annotations)
        self._cluster.patch("pods", pod.name, patch, pod.namespace, kind=PatchType.MERGE, subresource="status")

    def _send(self, request: ApiRequest, act: Callable[[], object]) -> Answer | None:
        """Send a request; None when it went through, else the API server's answer."""
        self._disturb(f"{request.verb} {request.resource}")
        said = self.admission(request)
        if said is not None:
            return said
        try:
            act()
            self._lose(f"{request.verb} {request.resource}")
        except ApiError as refused:
            return Answer(status=refused.code, body=refused.status(), retry_after=refused.retry_after or None)
        return None


def request_about(verb: str, resource: str, what: str) -> ApiRequest:
    """Build a request as errors name it."""
    return ApiRequest(verb=verb, resource=resource, path=what)
