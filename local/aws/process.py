"""Start of the local AWS as a process of its own, and its client: for the demo, the benchmarks and the tests."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from local import lifeline
from local.ports import reserved_port

START_SECONDS = 300.0  # limits only the wait for a process that does not start
STOP_SECONDS = 10.0
ANSWER_SECONDS = 300  # a function that is invoked may take its whole time


class StartFailed(RuntimeError):
    """Error: the launcher ended, or did not become ready in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAws:
    """Local AWS that runs."""

    endpoint: str
    region: str
    account: str
    directory: Path
    process: subprocess.Popen[bytes]

    def client(self, service: str, **more: Any) -> Any:
        """Return a boto3 client for it, with dummy credentials and no retries unless ``config`` is given."""
        more.setdefault(
            "config", Config(retries={"max_attempts": 0}, read_timeout=ANSWER_SECONDS, max_pool_connections=50)
        )
        more.setdefault("region_name", self.region)
        more.setdefault("aws_access_key_id", "local")
        more.setdefault("aws_secret_access_key", "local")
        return boto3.client(service, endpoint_url=self.endpoint, **more)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Make one call of the control API; ``path`` without ``/_local/``. Raises urllib's ``HTTPError``."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/_local/{path}", data=data, method=method)
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return json.load(answer)


@contextlib.contextmanager
def running(directory: Path, *, region: str = "us-east-1", account: str = "000000000000") -> Iterator[LocalAws]:
    """Start a local AWS, yield it, and stop it again; it also ends when this process is killed.

    Its log is ``aws.log`` in the directory.
    """
    directory.mkdir(parents=True, exist_ok=True)
    arguments = ["--region", region, "--account", account, "--dir", str(directory)]
    log = directory / "aws.log"
    with contextlib.ExitStack() as ending:
        with reserved_port() as port:
            process = lifeline.start("local.aws", "--port", str(port), *arguments, log=log)
            ending.callback(_stop, process)
            written = _wait_ready(directory / "aws.json", process, log)
        yield LocalAws(directory=directory, process=process, **written)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    lifeline.release(process, STOP_SECONDS)


def _wait_ready(file: Path, process: subprocess.Popen[bytes], log: Path) -> dict[str, str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if file.exists():
            found: dict[str, str] = json.loads(file.read_text())
            return found
        time.sleep(0.02)
    raise StartFailed(f"the local AWS did not start:\n{log.read_text(errors='replace')[-3000:]}")
