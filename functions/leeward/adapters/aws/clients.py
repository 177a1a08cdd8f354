"""botocore clients, created when first used and kept for the life of the process.

botocore, not boto3 on top of it: the same clients, and a cold start that is shorter by boto3's own import. It reads
AWS_SDK_UA_APP_ID, which puts the function's name into the user agent, and AWS_ENDPOINT_URL by itself. Calls that take
many values are made in chunks, answers are read page by page."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from leeward.adapters.aws.errors import RATE_EXCEEDED, OutOfTimeError, aws_call
from leeward.errors import InvalidInputError
from leeward.time_budget import TimeBudget

CONNECT_SECONDS = 2
READ_SECONDS = 8
SLOW_READ_SECONDS = {"autoscaling": 20}  # LaunchInstances answers only when EC2 has launched
ATTEMPTS = 3
POOL_CONNECTIONS = 16
TOO_MANY_REQUESTS = 429


class QuickLoader(Loader):  # type: ignore[misc]  # botocore has no types
    """Loader of botocore's data, the folders of AWS_DATA_PATH first."""

    def list_available_services(self, type_name: str) -> list[str]:
        """Return every folder. botocore looks into each of 400 for a file of the type, twice for a first client, which
        is a tenth of a cold start; whether the service has one, it looks up anyway.
        """
        del type_name
        folders = [path for path in map(Path, self.search_paths) if path.is_dir()]
        return sorted({service.name for folder in folders for service in folder.iterdir()})


@cache
def _loader(data_path: str) -> QuickLoader:
    """Return the loader of the process: each session's own would parse and keep every model again, for each account."""
    folders = [str(Path(path).expanduser()) for path in data_path.split(os.pathsep) if path]
    return QuickLoader(extra_search_paths=folders)


class AwsClients:
    """Clients of the process's own credentials, of a profile or of a role, and one home Region. Threads may share
    them.
    """

    def __init__(
        self,
        region: str | None = None,
        profile: str | None = None,
        throttled: Callable[[str], object] = lambda _call: None,
        signing: Any = None,
        profile_option: str = "--profile",
    ) -> None:
        """`throttled` is called with `service:Operation` for each try that AWS throttles, also one that is repeated.
        `signing`: botocore credentials to use instead of the process's own. `profile_option`: names the profile, for
        the error.
        """
        self._profile_option = profile_option
        self._signing = signing
        self._others: list[AwsClients] = []
        self._throttled = throttled
        self._region = region
        self._profile = profile
        self._session: Any = None
        self._made: dict[tuple[str, str | None, bool, float | None], Any] = {}
        self._lock = threading.RLock()
        self._budget: TimeBudget | None = None

    @property
    def region(self) -> str:
        """Home Region: the caller's, AWS_REGION as the AWS CLI has it, AWS_DEFAULT_REGION, the profile's. Raises
        InvalidInputError if none of them is set, or for an unknown profile.
        """
        with aws_call("botocore:Region", "the default profile"):
            named = self._region or os.environ.get("AWS_REGION")  # botocore reads AWS_DEFAULT_REGION alone
            region = named or self._loaded().get_config_variable("region")
        if not region:
            raise InvalidInputError(
                "no AWS Region is set: found none in --region, AWS_REGION, AWS_DEFAULT_REGION or the profile, expected "
                "one, such as --region us-east-1"
            )
        return str(region)

    @property
    def partition(self) -> str:
        """Partition of the home Region: `aws`, `aws-cn` ..."""
        return str(self._loaded().get_partition_for_region(self.region))

    def known_regions(self) -> frozenset[str]:
        """Return the Regions of EC2 that botocore lists, of every partition."""
        session = self._loaded()
        return frozenset(
            region
            for partition in session.get_available_partitions()
            for region in session.get_available_regions("ec2", partition_name=partition)
        )

    def credentials(self) -> Any:
        """Return botocore's frozen credentials (access_key, secret_key, token), or None where there are none."""
        with aws_call("botocore:GetCredentials", "the default profile"):
            found = self._loaded().get_credentials()
            return found.get_frozen_credentials() if found else None

    def serve_until(self, budget: TimeBudget) -> None:
        """Refuse to begin a try of any call once the budget is spent: the invocation still has results to report."""
        self._budget = budget
        for others in self._others:
            others.serve_until(budget)

    def signed_by(self, credentials: Any, *, region: str) -> "AwsClients":
        """Return clients in `region` that sign with these botocore credentials, within the same budget."""
        others = AwsClients(region, throttled=self._throttled, signing=credentials)
        self._others.append(others)
        return others

    def get(
        self, service: str, *, region: str | None = None, retries: bool = True, read_seconds: float | None = None
    ) -> Any:
        """Return a client with short time-outs. `retries=False` for a call that must not be repeated blindly;
        `read_seconds`: for an answer, instead of the service's usual ones.
        """
        key = (service, region, retries, read_seconds)
        with self._lock:
            if key not in self._made:
                seconds = read_seconds or SLOW_READ_SECONDS.get(service, READ_SECONDS)
                self._made[key] = self._make(service, region or self.region, ATTEMPTS if retries else 1, seconds)
            return self._made[key]

    def _make(self, service: str, region: str, attempts: int, read_seconds: float) -> Any:
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=read_seconds,
            max_pool_connections=POOL_CONNECTIONS,
            retries={"mode": "standard", "total_max_attempts": attempts},
        )
        with aws_call(f"{service}:client", region):
            made = self._loaded().create_client(service, region_name=region, config=config)
        made.meta.events.register("before-send", self._refuse_late)
        made.meta.events.register("needs-retry", self._note_throttled)
        return made

    def _refuse_late(self, **_: object) -> None:
        if self._budget is not None and self._budget.left <= 0:
            raise OutOfTimeError(error="no time is left in this invocation")

    def _note_throttled(self, response: Any, operation: Any, **_: object) -> None:
        """Take what botocore knows of one try: (HTTP response, parsed answer), None where no answer came. Returns
        nothing: whether the try is repeated is botocore's own decision.
        """
        answer = response[1] if response else {}
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if answer.get("Error", {}).get("Code") in RATE_EXCEEDED or status == TOO_MANY_REQUESTS:
            self._throttled(f"{operation.service_model.service_name}:{operation.name}")

    def _loaded(self) -> Any:
        """Return the session. STS is always called on the Region's endpoint: SDKs before botocore 1.40 default to the
        global one, whose tokens EKS refuses outside us-east-1 and which private networks do not reach.
        """
        with self._lock:
            if self._session is None:
                session = botocore.session.Session(profile=self._profile)
                if self._profile is not None and self._profile not in session.available_profiles:
                    known = ", ".join(sorted(session.available_profiles)) or "none at all"
                    raise InvalidInputError(
                        f"{self._profile_option}: found {self._profile!r}, expected a profile of your AWS "
                        f"configuration: {known}"
                    )
                session.register_component("data_loader", _loader(session.get_config_variable("data_path") or ""))
                self._session = session
                self._session.set_config_variable("sts_regional_endpoints", "regional")
                if self._signing is not None:
                    self._session._credentials = self._signing  # set_credentials takes fixed ones only
            return self._session


def chunks(values: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield distinct values in their first order, at most `size` at a time."""
    distinct = iter(dict.fromkeys(values))
    while chunk := list(islice(distinct, size)):
        yield chunk


def pages(client: Any, operation: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every page of a paged operation (botocore's snake_case name)."""
    yield from client.get_paginator(operation).paginate(**arguments)
