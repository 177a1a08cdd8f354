"""Bearer token of Amazon EKS: a presigned sts:GetCallerIdentity that names the cluster.

EKS calls the URL and maps the caller by the cluster's access entries. A token is good for 15 minutes from its date
(aws-iam-authenticator, pkg/token), so it is kept for ten at most, and never beyond the credentials that signed it."""

from __future__ import annotations

import base64
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.credentials import Credentials
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner

from leeward.adapters.aws.access import Access, Grant
from leeward.adapters.aws.clients import AwsClients

if TYPE_CHECKING:
    from leeward.ports.clock import Clock

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
KEPT = timedelta(minutes=10)
BEFORE_EXPIRY = timedelta(minutes=1)
SIGNED_SECONDS = 60  # the value that the tools sign; EKS uses the date


class TokenSource:
    """Tokens of one cluster for one set of credentials. Safe to share between threads."""

    def __init__(self, clients: AwsClients, clock: Clock, access: Access, *, cluster: str, region: str) -> None:
        self._clients = clients
        self._clock = clock
        self._access = access
        self._cluster = cluster
        self._region = region
        self._kept: tuple[str, datetime] | None = None
        self._lock = threading.Lock()

    def token(self, *, fresh: bool = False) -> str:
        """Return the kept token, or a new one when it is old or (`fresh`) was refused."""
        with self._lock:
            now = self._clock.now()
            if fresh or self._kept is None or now >= self._kept[1]:
                grant = self._access.grant(fresh=fresh)
                limit = now + KEPT
                until = min(limit, grant.expires - BEFORE_EXPIRY) if grant.expires else limit
                self._kept = (self._sign(grant), until)
            return self._kept[0]

    def _sign(self, grant: Grant) -> str:
        # The endpoint comes from a client, so that botocore handles partitions and AWS_ENDPOINT_URL.
        endpoint = self._clients.get("sts", region=self._region).meta.endpoint_url
        return eks_token(grant, cluster=self._cluster, region=self._region, sts_endpoint=endpoint)


def eks_token(grant: Grant, *, cluster: str, region: str, sts_endpoint: str) -> str:
    """Sign one token now. Pure except for botocore's clock."""
    credentials = Credentials(grant.access_key, grant.secret_key, grant.session_token)
    emitter = HierarchicalEmitter()  # the signer holds it by a weak reference only
    signer: Any = RequestSigner(ServiceId("STS"), region, "sts", "v4", credentials, emitter)
    url = signer.generate_presigned_url(
        {
            "method": "GET",
            "url": f"{sts_endpoint}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {CLUSTER_HEADER: cluster},
            "context": {},
        },
        region_name=region,
        expires_in=SIGNED_SECONDS,
        operation_name="",
    )
    return PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
