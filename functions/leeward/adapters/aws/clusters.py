"""`ports.kubernetes.Clusters` on Amazon EKS.

Decides where the endpoint of a cluster, its token and its policies are read, and how long they are kept; `access`
decides which role is used."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leeward.adapters.aws.access import Access
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.adapters.aws.policies import ParameterStorePolicies
from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from leeward.adapters.kubernetes.token import TokenSource
from leeward.adapters.settings import ServedCluster
from leeward.errors import ClusterGoneError, ClusterUnreachableError, InvalidInputError, ObjectGoneError
from leeward.policy.document import ClusterPolicies
from leeward.ports.kubernetes import Kubernetes
from leeward.time_budget import TimeBudget

if TYPE_CHECKING:
    from leeward.adapters.pauses import KnownPauses
    from leeward.ports.clock import Clock


class EksKubeConfig:
    """`client.KubeConfig` of an EKS cluster. The endpoint is looked up once, and again when it stops responding."""

    def __init__(self, clients: AwsClients, tokens: TokenSource, *, cluster: str, region: str) -> None:
        self._clients = clients
        self._tokens = tokens
        self._cluster = cluster
        self._region = region
        self._endpoint: Endpoint | None = None

    def endpoint(self, *, fresh: bool = False) -> Endpoint:
        """Return the endpoint. Raises ClusterUnreachableError while EKS creates the cluster, ClusterGoneError if the
        cluster does not exist.
        """
        if fresh or self._endpoint is None:
            self._endpoint = self._look_up()
        return self._endpoint

    def token(self, *, fresh: bool = False) -> str:
        """Return the bearer token."""
        return self._tokens.token(fresh=fresh)

    def _look_up(self) -> Endpoint:
        try:
            with aws_call("eks:DescribeCluster", self._cluster):
                answer = self._clients.get("eks", region=self._region).describe_cluster(name=self._cluster)
        except ObjectGoneError as error:
            raise ClusterGoneError(str(error)) from error
        cluster = answer["cluster"]
        url, ca = cluster.get("endpoint"), (cluster.get("certificateAuthority") or {}).get("data")
        if not url:
            raise ClusterUnreachableError(f"{self._cluster} has no endpoint, its status is {cluster.get('status')}")
        return Endpoint(url=url, ca=base64.b64decode(ca).decode() if ca else None)


def cluster_client(clients: AwsClients, clock: Clock, access: Access, *, cluster: str, region: str) -> ClusterClient:
    """Return a client of one cluster's API. Its first request looks up the endpoint."""
    tokens = TokenSource(clients, clock, access, cluster=cluster, region=region)
    return ClusterClient(cluster, EksKubeConfig(clients, tokens, cluster=cluster, region=region), clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEntry:
    """Way into the API of each cluster."""

    access: Callable[[ServedCluster], Access]  # the credentials for it
    event_lost: Callable[[str], None]  # takes a message for each Event that could not be written
    clients_of: Callable[[ServedCluster], AwsClients] | None = None  # of its account and Region; None: the deployment's


class EksClusters:
    """Clusters that the settings name.

    Methods raise InvalidInputError for a cluster that the settings do not name.
    """

    def __init__(
        self,
        clients: AwsClients,
        clock: Clock,
        served: Sequence[ServedCluster],
        policies: ParameterStorePolicies,
        pauses: KnownPauses,
        entry: ClusterEntry,
    ) -> None:
        self._clients = clients
        self._entry = entry
        self._clock = clock
        self._served = {cluster.name: cluster for cluster in served}
        self._policies = policies
        self._pauses = pauses
        self._apis: dict[str, ClusterApi] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of the clusters, in the order of the settings."""
        return tuple(self._served)

    def policies(self, cluster: str) -> ClusterPolicies:
        """Return the cluster's policies and pauses, at most 60 s old. Where the pauses cannot be read, the last known
        ones are returned with the error in `unreadable`. Raises InvalidPolicyError.
        """
        policies = self._policies.of_cluster(self._known(cluster).name)
        return replace(policies, pauses=self._pauses.of_cluster(cluster))

    def kubernetes(self, cluster: str, *, within: TimeBudget | None = None) -> Kubernetes:
        """Return the API of the cluster. Each process has one client per cluster, which keeps its connections.

        `within`: time budget of all requests together; None: each request has its own limit only.
        """
        api = self._apis.get(cluster)
        if api is None:
            api = self._apis.setdefault(cluster, self._new_api(self._known(cluster)))
        return api if within is None else api.within(within)

    def _new_api(self, cluster: ServedCluster) -> ClusterApi:
        region = cluster.region or self._clients.region
        clients = self._entry.clients_of(cluster) if self._entry.clients_of else self._clients
        access = self._entry.access(cluster)
        client = cluster_client(clients, self._clock, access, cluster=cluster.name, region=region)
        return ClusterApi(client, self._entry.event_lost)

    def _known(self, cluster: str) -> ServedCluster:
        if cluster not in self._served:
            raise InvalidInputError(f"found cluster {cluster!r}, expected one of {', '.join(self._served)}")
        return self._served[cluster]
