"""Clients of the API servers, with the product's own retries, tokens and look-ups of the endpoint in front of a model.

Each execution environment has a client of each cluster, as a function has. The API server judges the date and the
session of a token, and no longer answers once EKS has deleted the cluster."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import urllib3
from botocore.exceptions import ClientError

from leeward.adapters.aws.access import AssumedRole, Grant
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.clusters import EksKubeConfig
from leeward.adapters.kubernetes.answers import Answer, ApiRequest
from leeward.adapters.kubernetes.client import ATTEMPTS, FIRST_PAUSE_SECONDS, ClusterClient, _Connected
from leeward.adapters.kubernetes.token import TokenSource
from leeward.ports.clock import Clock
from leeward.ports.kubernetes import Kubernetes
from leeward.time_budget import TimeBudget

LIVES, AHEAD = 900.0, 300.0  # seconds after its date, and before it, for which a token is accepted
SESSION = timedelta(hours=1)
REGION, CA = "eu-west-1", "LS0tLS1CRUdJTg=="


class Connections:
    """Clients by execution environment and cluster. `clock`: that of the calling environment; `true`: the true time in
    seconds. `deleted`: clusters that EKS has deleted, and when; `revoked`: when the sessions before were revoked.
    """

    def __init__(self, clock: Clock, true: Callable[[], float]) -> None:
        self._clock, self._true = clock, true
        self._known: dict[tuple[str, str], tuple[_KubeConfig, _Connected]] = {}
        self.deleted: dict[str, float] = {}
        self.revoked = 0.0
        self.refused = 0  # tokens

    def connect(self, cluster: str, api: Kubernetes, environment: str, within: TimeBudget | None) -> Kubernetes:
        """Return the API behind the client of the environment."""
        key = environment, cluster
        if key not in self._known:
            self._known[key] = _KubeConfig(cluster, self._clock, self), _Connected()
        config, connected = self._known[key]
        client = _Client(cluster, config, self._clock, budget=within, connected=connected)
        client.answers = self._answer
        return cast(Kubernetes, _Connection(api, client))

    def describe(self, cluster: str) -> dict[str, Any]:
        """Return DescribeCluster's answer. Raises ClientError for a deleted cluster."""
        if cluster in self.deleted:
            message = f"No cluster found for name: {cluster}."
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": message}}, "DescribeCluster")
        return {"cluster": {"endpoint": f"https://{cluster}", "certificateAuthority": {"data": CA}}}

    def now(self) -> datetime:
        """Return the true time, at which STS begins a session."""
        return datetime.fromtimestamp(self._true(), UTC)

    def _answer(self, cluster: str, token: str) -> Answer:
        if cluster in self.deleted:
            raise urllib3.exceptions.HTTPError(f"{cluster} has no address: Name or service not known")
        signed, began = map(float, token.split("/"))
        now = self._true()
        old = not signed - AHEAD <= now < signed + LIVES
        if old or began < self.revoked or now >= began + SESSION.total_seconds():
            self.refused += 1
            return Answer(status=401, body={"message": "Unauthorized"})
        return Answer(status=200, body={})


class _Client(ClusterClient):
    """The product's client, whose tries reach a model. Its pauses are not random, so that a seed repeats itself."""

    answers: Callable[[str, str], Answer]

    def _once(self, _request: ApiRequest) -> Answer:
        kept = self._connected
        self._kube_config.endpoint(fresh=kept.lost)
        kept.lost = False
        return self.answers(self.cluster, self._kube_config.token())

    def _wait(self, attempt: int, _began: datetime) -> bool:
        pause = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
        if attempt >= ATTEMPTS or pause > self._left:
            return False
        self._clock.sleep(pause)
        return True


class _Connection:
    """`ports.kubernetes.Kubernetes` whose calls reach the server only through the client."""

    def __init__(self, api: Kubernetes, client: ClusterClient) -> None:
        self._api, self._client = api, client

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._api, method)
        if method == "beside":
            return call

        def connected(*args: Any, **named: Any) -> Any:
            self._client.ask(ApiRequest(verb="get", resource=method, path="/"))
            return call(*args, **named)

        return connected


class _KubeConfig(EksKubeConfig):
    """The product's look-ups, on the model's EKS and STS."""

    def __init__(self, cluster: str, clock: Clock, connections: Connections) -> None:
        clients = cast(AwsClients, _Clients(cluster, connections))
        role = AssumedRole(clients, clock, role="leeward", region=REGION)
        tokens = _Tokens(clients, clock, role, cluster=cluster, region=REGION)
        super().__init__(clients, tokens, cluster=cluster, region=REGION)


class _Tokens(TokenSource):
    """The product's tokens, each with its date by the environment's clock and the beginning of its session."""

    def _sign(self, grant: Grant) -> str:
        return f"{self._clock.now().timestamp()}/{grant.access_key}"


class _Clients:
    def __init__(self, cluster: str, connections: Connections) -> None:
        self._cluster, self._connections = cluster, connections

    def get(self, _service: str, *, region: str) -> Any:
        del region
        return self

    def describe_cluster(self, *, name: str) -> dict[str, Any]:
        return self._connections.describe(name)

    def assume_role(self, **_: str) -> dict[str, Any]:
        now = self._connections.now()
        key, expires = f"{now.timestamp()}", now + SESSION
        return {"Credentials": {"AccessKeyId": key, "SecretAccessKey": "", "SessionToken": "", "Expiration": expires}}
