"""Credentials of the role that a function assumes for clusters in another account or Region.

botocore signs with them and renews them before they expire. STS is tried once, for some seconds; a failure is kept for
a while, so that of the calls into one account only the first waits for it, and calls into others wait for none."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from botocore.credentials import DeferredRefreshableCredentials

from leeward.adapters.aws.errors import aws_call
from leeward.errors import AccessDeniedError, LeewardError

if TYPE_CHECKING:
    from datetime import datetime

    from leeward.adapters.aws.clients import AwsClients
    from leeward.ports.clock import Clock

READ_SECONDS = 3  # an answer takes a tenth of a second
FAILURE_KEPT = timedelta(seconds=20)  # less than the minute after which the reconciler tries again
METHOD = "assume-role"


class MemberRole:
    """Session of a role, assumed with an external id (AWS IAM user guide, "Access to AWS accounts owned by third
    parties"). `session`: its name in the account's trail.
    """

    def __init__(
        self, clients: AwsClients, clock: Clock, *, role: str, external_id: str, region: str, session: str
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._asked = {"RoleArn": role, "ExternalId": external_id, "RoleSessionName": session}
        self._region = region
        self._failed: tuple[datetime, LeewardError] | None = None
        self._lock = threading.Lock()

    def credentials(self) -> Any:
        """Return botocore credentials that call STS when they are first used, and again before they expire."""
        return DeferredRefreshableCredentials(self._assume, METHOD)

    def _assume(self) -> dict[str, str]:
        """Return the session as botocore takes it. Raises the errors of the call, which name the role."""
        with self._lock:
            failed = self._failed
            if failed is not None and self._clock.now() < failed[0] + FAILURE_KEPT:
                raise type(failed[1])(str(failed[1]))
            try:
                answer = self._call()
            except LeewardError as error:
                explained = _explained(error)
                self._failed = (self._clock.now(), explained)
                raise explained from error
            self._failed = None
        raw = answer["Credentials"]
        return {
            "access_key": raw["AccessKeyId"],
            "secret_key": raw["SecretAccessKey"],
            "token": raw["SessionToken"],
            "expiry_time": raw["Expiration"].isoformat(),
        }

    def _call(self) -> Any:
        client = self._clients.get("sts", region=self._region, retries=False, read_seconds=READ_SECONDS)
        with aws_call("sts:AssumeRole", self._asked["RoleArn"]):
            return client.assume_role(**self._asked)


def _explained(error: LeewardError) -> LeewardError:
    if not isinstance(error, AccessDeniedError):
        return error
    return AccessDeniedError(f"{error} (deploy the member stack in that account again, with the same externalId)")
