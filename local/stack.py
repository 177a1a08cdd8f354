"""The local AWS and the local Kubernetes API as two child processes, joined as EKS joins them.

The Kubernetes API is the emulated one, or stands before a cluster that a kubeconfig names (`local.foreign`).

The cluster's endpoint and certificate are set in the local EKS, its access entries are copied from there, and nodes
join when the local EC2 starts instances. Nothing listens beyond loopback; `stop` leaves no process and no port, nor
does the end of the parent process (`lifeline`).
"""

import json
import os
import shutil
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3
from botocore.config import Config

from local import lifeline
from local.ports import reserved_port

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 300  # limits only the wait for a process that does not start
STOP_SECONDS = 20
IMAGE = "Windows_Server-2016-English-Nano-Base-2017.10.13"  # of the local EC2's 1,300 it is the first
ANSWER_SECONDS = 600  # an invoked function may use its whole timeout; a repeated call would run it twice


class LocalStackError(Exception):
    """Error: a part of the local stack failed a request; the message ends with its last output."""


@dataclass(kw_only=True)
class LocalStack:
    """Local stack. Start it with `with LocalStack(directory=…) as stack`. Times in seconds; scales shorten them for
    interactive use.
    """

    directory: Path
    cluster: str = "demo"
    region: str = "us-east-1"
    account: str = "000000000000"
    boot_delay: float = 3.0
    termination_scale: float = 0.1
    pod_start: float = 1.0
    foreign: Path | None = None  # kubeconfig of an empty cluster to use in place of the emulated one
    sts: str = ""  # where EKS tokens are verified, of clusters that another account's functions call; empty: here
    _children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _taking_over: threading.Lock = field(default_factory=threading.Lock)
    _making_clients: threading.Lock = field(default_factory=threading.Lock)
    _clients: dict[str, Any] = field(default_factory=dict)
    _image: str = ""
    _watcher: threading.Thread | None = None
    _entries: Any = None  # that the cluster has

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start both processes, make the cluster known to the local EKS, and keep its access entries in sync."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with reserved_port() as self.port:
            self._spawn("aws", "local.aws", "--port", str(self.port), *self._aws_options())
            self._await("aws", lambda: self.control("GET", "calls"))
        self._spawn("cluster", "local.cluster", "--name", self.cluster, "--port", "0", *self._cluster_options())
        self._await("cluster", lambda: self.cluster_control("GET", "pdb-violations"))
        eks, endpoint = self.client("eks"), self._endpoint()
        version = ".".join(str(endpoint["version"]).removeprefix("v").split(".")[:2])
        role = f"arn:aws:iam::{self.account}:role/local-eks"
        eks.create_cluster(name=self.cluster, roleArn=role, resourcesVpcConfig={"subnetIds": []}, version=version)
        known = {name: endpoint[name] for name in ("endpoint", "certificateAuthorityData")}
        known["token"] = (self.directory / "cluster" / "admin-token").read_text().strip()  # EKS' own, for its updates
        self.control("PUT", f"eks/{self.cluster}", known)
        self._watcher = threading.Thread(target=self._watch_access_entries, daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """End both processes; a process that does not end within STOP_SECONDS is killed."""
        self._stopping.set()
        for child in reversed(self._children):
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
        for child in reversed(self._children):
            lifeline.release(child, STOP_SECONDS)
        self._children.clear()
        self._clients.clear()

    @property
    def endpoint(self) -> str:
        """URL that AWS clients put into AWS_ENDPOINT_URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api(self) -> str:
        """URL of the cluster's Kubernetes API."""
        return str(self._endpoint()["endpoint"])

    @property
    def kubeconfig(self) -> Path:
        """File that kubectl reads from KUBECONFIG."""
        return self.directory / "cluster" / "kubeconfig"

    def environment(self) -> dict[str, str]:
        """Return the environment in which the AWS command line, the CDK and kubectl act on this stack."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "KUBECONFIG": str(self.kubeconfig),
        }

    def client(self, service: str) -> Any:
        """Return a boto3 client for the local AWS, made once: making one costs more than most calls."""
        with self._making_clients:
            if service not in self._clients:
                self._clients[service] = boto3.client(
                    service,
                    endpoint_url=self.endpoint,
                    region_name=self.region,
                    aws_access_key_id="local",
                    aws_secret_access_key="local",
                    config=Config(
                        retries={"max_attempts": 3, "mode": "standard"},
                        read_timeout=ANSWER_SECONDS,
                        max_pool_connections=30,
                    ),
                )
            return self._clients[service]

    @property
    def image(self) -> str:
        """Image that instances run, asked for by its name: a list of all takes a second of CPU."""
        if not self._image:
            named = [{"Name": "name", "Values": [IMAGE]}]
            self._image = str(self.client("ec2").describe_images(Filters=named)["Images"][0]["ImageId"])
        return self._image

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Call the local AWS's control API, below /_local/."""
        return call(method, f"{self.endpoint}/_local/{path}", body)

    def cluster_control(self, method: str, path: str, body: Any = None) -> Any:
        """Call the local cluster's control API, below /_local/."""
        return self.kubernetes(method, f"/_local/{path}", body)

    def kubernetes(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Call the cluster's Kubernetes API as its administrator. `kind`: the body's media type."""
        directory = self.directory / "cluster"
        context = ssl.create_default_context(cafile=str(directory / "ca.crt"))
        token = (directory / "admin-token").read_text().strip()
        return call(method, f"{self.api}{path}", body, token=token, context=context, kind=kind)

    def kubectl(self, *arguments: str, stdin: str | None = None, binary: str = "kubectl") -> str:
        """Run a real kubectl against the cluster. Raises LocalStackError with its output when it fails."""
        done = subprocess.run(
            [binary, *arguments], env=self.environment(), input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalStackError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def emit(self, event: Mapping[str, Any]) -> str:
        """Send an `aws.*` event to EventBridge; return its id. A repeated id is a redelivery."""
        return str(self.control("POST", "events", event).get("id", ""))

    def deploy(self, settings: Mapping[str, Any], stack: str = "--all") -> float:
        """Run `cdk bootstrap` and `cdk deploy` with these settings; return the seconds it took. `stack`: the one for
        this account, where there are others.
        """
        began = time.monotonic()
        self.bootstrap()
        node_roles = [f"arn:aws:iam::{self.account}:role/nodes"]  # the local EC2 knows no instance profiles
        context = f"leeward={json.dumps({'nodeRoles': node_roles, **settings})}"
        self._cdk(ROOT, "deploy", stack, "--require-approval", "never", "--context", context)
        self.take_over_access_entries()
        return time.monotonic() - began

    def bootstrap(self) -> None:
        """Run `cdk bootstrap`. Without a cdk.json, and with the environment named, it needs no synthesis."""
        self._cdk(self.directory, "bootstrap", f"aws://{self.account}/{self.region}")

    def take_over_access_entries(self) -> None:
        """Give the cluster the access entries that the local EKS holds for it, as EKS's authenticator sees them."""
        with self._taking_over:  # an earlier read is never written after a later one
            entries = self.control("GET", f"access-entries?cluster={self.cluster}")
            if entries != self._entries:
                self.cluster_control("PUT", "access-entries", entries)
                self._entries = entries

    def _cdk(self, where: Path, command: str, *arguments: str) -> None:
        output = self.directory / "cdk.out"
        done = subprocess.run(
            [
                *(str(ROOT / "node_modules/.bin/cdk"), command, *arguments, "--no-notices"),
                *("--output", str(output)),
            ],
            cwd=where,
            env=self.environment()
            | {
                "PATH": f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}",
                "CDK_HOME": str(self.directory / "cdk-home"),
                "CDK_DISABLE_CLI_TELEMETRY": "true",
                "CDK_DISABLE_VERSION_CHECK": "1",
                "CDK_DEFAULT_ACCOUNT": self.account,
                "CDK_DEFAULT_REGION": self.region,
                "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LocalStackError(f"cdk {command} failed:\n{(done.stdout + done.stderr)[-3000:]}")

    def _aws_options(self) -> list[str]:
        return ["--region", self.region, "--account", self.account]

    def _cluster_options(self) -> list[str]:
        return [
            *("--sts-endpoint", self.sts or self.endpoint, "--aws-endpoint", self.endpoint, "--region", self.region),
            *("--boot-delay", str(self.boot_delay), "--pod-start", str(self.pod_start)),
            *("--termination-scale", str(self.termination_scale)),
            *(("--kubeconfig", str(self.foreign)) if self.foreign else ()),
        ]

    def _spawn(self, name: str, module: str, *arguments: str) -> None:
        directory = self.directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        environment = self.environment() if name == "cluster" else None
        self._children.append(
            lifeline.start(module, *arguments, "--dir", str(directory), log=directory / "log", environment=environment)
        )

    def _await(self, name: str, ready: Any) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._children[-1].poll() is not None:
                break
            try:
                ready()
            except (OSError, LocalStackError, ValueError):
                time.sleep(0.05)
            else:
                return
        words = (self.directory / name / "log").read_text(errors="replace")[-3000:]
        raise LocalStackError(f"the local {name} did not start:\n{words}")

    def _endpoint(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads((self.directory / "cluster" / "endpoint.json").read_text())
        return found

    def _watch_access_entries(self) -> None:
        while not self._stopping.wait(1.0):
            try:
                self.take_over_access_entries()
            except (OSError, LocalStackError):
                continue  # one of the two is stopping, or busy: retried in the next second


def call(
    method: str,
    url: str,
    body: Any = None,
    *,
    token: str | None = None,
    context: ssl.SSLContext | None = None,
    kind: str = "application/json",
) -> Any:
    """Make one JSON request. Raises LocalStackError with the text of a 4xx or 5xx, OSError without an answer."""
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Content-Type", kind)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS, context=context) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        raise LocalStackError(f"{method} {url}: {error.code} {error.read().decode(errors='replace')}") from error
    return json.loads(text) if text else None
