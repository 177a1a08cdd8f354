"""The asset with the oldest SDK that its runtime has brought along, and under the runtime's own Python where one is
installed. Isolated: the asset, that SDK and the standard library are all that the process sees."""

import json
import os
import subprocess
import sys

import pytest

from infra.asset import MODELS, build_asset
from infra.bytecode import RUNTIME, runtime_python
from infra.permissions import PERMISSIONS
from tests.infra.conftest import ROOT
from tests.infra.sdk_names import operation_of, services_of

OLDEST = ROOT / "build" / "oldest-sdk"


@pytest.fixture(scope="module", params=["this-python", "python3.13"])
def python(request):
    if request.param == "this-python":
        return sys.executable
    found = runtime_python()
    if found is None:
        pytest.skip(f"not run: no Python {RUNTIME}, the functions' runtime, is installed")
    return found


@pytest.fixture(scope="module")
def asset():
    assert OLDEST.exists(), "build/oldest-sdk is missing: run `make setup`"
    return build_asset(ROOT).folder


@pytest.fixture
def run(python, asset):
    """Run a script with the asset, and answer what it prints as JSON."""

    def inner(script, **environment):
        path = f"import sys; sys.path[:0] = [{str(asset)!r}, {str(OLDEST)!r}]; sys.dont_write_bytecode = True\n"
        done = subprocess.run(
            [python, "-I", "-S", "-c", path + script], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return inner


CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_REGION": "eu-west-1",
    "AWS_DEFAULT_REGION": "eu-west-1",
}


def test_every_module_of_the_asset_imports(run, asset):
    modules = [
        ".".join(path.relative_to(asset).with_suffix("").parts)
        for path in sorted((asset / "leeward").rglob("*.py"))
        if path.name != "__init__.py"
    ]
    script = f"""
import importlib, json, botocore, urllib3
for module in {modules!r}:
    importlib.import_module(module)
print(json.dumps([botocore.__version__, urllib3.__version__]))
"""
    assert run(script) == ["1.34.145", "1.26.20"]


def test_launch_instances_is_known_by_the_model_in_the_asset(run, asset):
    script = """
import json
from leeward.adapters.aws.clients import AwsClients
client = AwsClients().get("autoscaling")
print(json.dumps([hasattr(client, "launch_instances"), client.can_paginate("describe_auto_scaling_groups")]))
"""
    assert run(script, **CREDENTIALS, AWS_DATA_PATH=str(asset / MODELS)) == [True, True]
    assert run(script, **CREDENTIALS) == [False, True], "the SDK is so old that the asset's model matters"


def test_tokens_are_signed_for_the_region_s_endpoint(run):
    script = """
import base64, json
from leeward.adapters.aws.access import OwnCredentials
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.wiring import SystemClock
from leeward.adapters.kubernetes.token import TokenSource
clients = AwsClients()
source = TokenSource(clients, SystemClock(), OwnCredentials(clients), cluster="blue", region="eu-west-1")
url = source.token().partition(".")[2]
print(json.dumps(base64.urlsafe_b64decode(url + "=" * (-len(url) % 4)).decode().split("/")[2]))
"""
    assert run(script, **CREDENTIALS) == "sts.eu-west-1.amazonaws.com"


def test_every_operation_that_the_functions_call_is_known(run, asset):
    """By the table of permissions, which recorded calls hold complete."""
    actions = {p.action for table in PERMISSIONS.values() for p in table if not p.indirect}
    services = {service for action in actions for service in services_of(action)}
    script = f"""
import json
from botocore.session import Session
session = Session()
clients = {{name: session.create_client(name, region_name="us-east-1") for name in {sorted(services)!r}}}
print(json.dumps({{name: list(client.meta.method_to_api_mapping.values()) for name, client in clients.items()}}))
"""
    known = run(script, **CREDENTIALS, AWS_DATA_PATH=str(asset / MODELS))
    unknown = {a for a in actions if not any(operation_of(a) in known[service] for service in services_of(a))}
    assert unknown == set()


def test_the_kubernetes_client_speaks_over_the_oldest_transport_and_gives_up_in_time(run):
    """Its connections bound the whole of an answer, for which they reach below urllib3's public interface."""
    script = """
import json, socket, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from leeward.adapters.wiring import SystemClock
from leeward.adapters.kubernetes.answers import ApiRequest
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from leeward.errors import ClusterUnreachableError
from leeward.time_budget import TimeBudget

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/trickles":
            self.connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 1000\\r\\n\\r\\n")
            try:
                for _ in range(40):
                    self.connection.sendall(b" ")
                    time.sleep(0.1)
            except OSError:
                pass
            return
        body = b'{"major": "1"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()

class KubeConfig:
    def endpoint(self, *, fresh=False):
        return Endpoint(url=f"http://127.0.0.1:{server.server_port}")
    def token(self, *, fresh=False):
        return "token"

clock = SystemClock()
client = ClusterClient("blue", KubeConfig(), clock)
major = client.ask(ApiRequest(verb="get", resource="version", path="/version"))["major"]
began = time.monotonic()
try:
    client.within(TimeBudget.of(clock, 1)).ask(ApiRequest(verb="get", resource="version", path="/trickles"))
    ended = "answered"
except ClusterUnreachableError:
    ended = "unreachable"
print(json.dumps([major, ended, time.monotonic() - began < 3]))
"""
    assert run(script) == ["1", "unreachable", True]
