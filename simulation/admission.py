"""Admission webhook that fails: the API server answers 500 for requests about one workload's pods."""

from collections.abc import Callable

from leeward.adapters.kubernetes.answers import Answer, ApiRequest
from local.cluster.model import Cluster
from simulation.faults import Injector

TIMEOUT = 10.0  # seconds that an API server waits for a webhook
TRIES = 2  # of the client


class Webhook:
    """Gate that is called before each write; returns the API server's answer, None where it admits the request."""

    def __init__(self, cluster: Cluster, injector: Injector, sleep: Callable[[float], None]) -> None:
        self._cluster, self._injector, self._sleep = cluster, injector, sleep

    def __call__(self, request: ApiRequest) -> Answer | None:
        """Check a request; only evictions concern it."""
        if request.resource != "pods/eviction" or not self._injector.refused:
            return None
        namespace, _, name = request.path.partition("/")
        pod = self._cluster.store.find("pods", name, namespace)
        workload = str((pod or {}).get("metadata", {}).get("labels", {}).get("app", ""))
        if not self._injector.webhook_fails(workload):
            return None
        self._sleep(self._injector.random("webhook answers").uniform(0.1, TIMEOUT) * TRIES)
        said = f'Internal error occurred: failed calling webhook "admit.{workload}.example": context deadline exceeded'
        return Answer(status=500, body={"message": said, "reason": "InternalError"})
