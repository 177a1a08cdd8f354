"""Credentials for a cluster: those of the role that the function assumes there, or the caller's own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.errors import AccessDeniedError
from leeward.model.times import as_instant

if TYPE_CHECKING:
    from leeward.ports.clock import Clock

RENEW_BEFORE = timedelta(minutes=5)
SESSION_NAME = "leeward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Credentials to sign with. `expires` None: not known."""

    access_key: str
    secret_key: str
    session_token: str | None = None
    expires: datetime | None = None

    def __repr__(self) -> str:
        """Return a text without the secret: it ends up in tracebacks."""
        return f"Grant(access_key={self.access_key!r}, expires={self.expires})"


class Access(Protocol):
    """Source of a cluster's credentials."""

    def grant(self, *, fresh: bool = False) -> Grant:
        """Return credentials that are valid for some more minutes; `fresh`: not the cached ones, which were refused."""
        ...


class AssumedRole:
    """Session of one role, which is assumed again five minutes before it ends. `session`: its name in audit logs."""

    def __init__(
        self, clients: AwsClients, clock: Clock, *, role: str, region: str, session: str = SESSION_NAME
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._role = role
        self._region = region
        self._session = session
        self._kept: Grant | None = None

    def grant(self, *, fresh: bool = False) -> Grant:
        """Call sts:AssumeRole at most once per session, on the regional endpoint of the cluster's Region."""
        kept = self._kept
        if fresh or kept is None or kept.expires is None or self._clock.now() >= kept.expires - RENEW_BEFORE:
            kept = self._kept = self._assume()
        return kept

    def _assume(self) -> Grant:
        with aws_call("sts:AssumeRole", self._role):
            answer = self._clients.get("sts", region=self._region).assume_role(
                RoleArn=self._role, RoleSessionName=self._session
            )
        raw = answer["Credentials"]
        return Grant(
            access_key=raw["AccessKeyId"],
            secret_key=raw["SecretAccessKey"],
            session_token=raw["SessionToken"],
            expires=as_instant(raw["Expiration"]),
        )


class OwnCredentials:
    """Credentials of the process itself, renewed by botocore: the command line's access to a cluster."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def grant(self, *, fresh: bool = False) -> Grant:
        """Return a frozen copy. Raises AccessDeniedError where there are no credentials."""
        del fresh  # botocore itself decides when to renew them
        frozen = self._clients.credentials()
        if frozen is None:
            raise AccessDeniedError("no AWS credentials: found none in the environment, the profile or the instance")
        return Grant(access_key=frozen.access_key, secret_key=frozen.secret_key, session_token=frozen.token)


class NoAccess:
    """Access of functions that call no cluster."""

    def grant(self, *, fresh: bool = False) -> Grant:
        """Raise AccessDeniedError."""
        del fresh
        raise AccessDeniedError('KUBERNETES_ACCESS is "none": this function speaks to no cluster')
