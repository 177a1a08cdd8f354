"""boto3 clients of one run, and detection of calls that an endpoint does not serve."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, EndpointConnectionError

from account_test.errors import NotServedError

NOT_SERVED = frozenset(
    {
        *(
            "InvalidAction",
            "UnknownOperationException",
            "UnknownOperation",
            "NotImplemented",
            "NotImplementedException",
        ),
        *("UnsupportedOperation", "UnsupportedService", "ServiceNotAvailable", "UnknownService", "404", "501"),
    }
)
GONE = (
    *("NotFound", "NoSuchEntity", "DoesNotExist", "NonExistentQueue", "ResourceNotFoundException"),
    *("does not exist", "not found", "NoSuch", "No such"),
)
READ_SECONDS = 300
SESSION_SECONDS = 1800.0


class Aws:
    """Clients, each made once. `credentials`: those of a session, as environment variables; empty: the caller's own."""

    def __init__(self, region: str, endpoint: str | None = None) -> None:
        self.region, self.endpoint = region, endpoint
        self._session = boto3.Session(region_name=region)
        self._made: dict[str, Any] = {}
        self._elsewhere: dict[str, tuple[float, Aws]] = {}
        self.credentials: Mapping[str, str] = {}

    def __call__(self, service: str) -> Any:
        """Return a client."""
        if service not in self._made:
            config = Config(
                retries={"max_attempts": 8, "mode": "standard"},
                read_timeout=READ_SECONDS,
                inject_host_prefix=self.endpoint is None,  # a local endpoint has one name only
            )
            self._made[service] = self._session.client(service, endpoint_url=self.endpoint, config=config)
        return self._made[service]

    def assumed(self, role: str) -> "Aws":
        """Return the clients of a session of another account's role. A session lasts an hour, a run may last longer."""
        made, found = self._elsewhere.get(role, (-SESSION_SECONDS, self))
        if time.monotonic() - made >= SESSION_SECONDS:
            given = self("sts").assume_role(RoleArn=role, RoleSessionName="leeward-account-test")["Credentials"]
            found = Aws(self.region, self.endpoint)
            found.credentials = {
                "AWS_ACCESS_KEY_ID": given["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": given["SecretAccessKey"],
                "AWS_SESSION_TOKEN": given["SessionToken"],
            }
            found._session = boto3.Session(
                region_name=self.region,
                aws_access_key_id=given["AccessKeyId"],
                aws_secret_access_key=given["SecretAccessKey"],
                aws_session_token=given["SessionToken"],
            )
            self._elsewhere[role] = time.monotonic(), found
        return found

    def arguments(self) -> str:
        """Return the arguments that an AWS CLI command needs in addition to its own."""
        return f"--region {self.region}" + (f" --endpoint-url {self.endpoint}" if self.endpoint else "")


@contextmanager
def served(call: str) -> Iterator[None]:
    """Raise NotServedError where the endpoint does not know the call at all."""
    try:
        yield
    except (EndpointConnectionError, ConnectionError) as error:
        raise NotServedError(f"{call} is not served here: {error}") from error
    except ClientError as error:
        if code(error) in NOT_SERVED or status(error) in {404, 501}:
            raise NotServedError(f"{call} is not served here ({code(error)})") from error
        raise


def code(error: ClientError) -> str:
    """Return AWS's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status(error: ClientError) -> int:
    """Return the HTTP status; 0 where the error is a modelled one, whatever its status."""
    response: Mapping[str, Any] = error.response
    modelled = code(error) and not code(error).isdigit() and code(error) not in NOT_SERVED
    return 0 if modelled else int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_gone(error: ClientError | BotoCoreError) -> bool:
    """Return whether the resource does not exist (any more): its removal is done."""
    text = str(error)
    return any(word in text for word in GONE)


def gone_is_fine(call: Callable[[], object]) -> None:
    """Carry out a removal that may find nothing."""
    try:
        call()
    except ClientError as error:
        if not is_gone(error):
            raise
