import pytest

from leeward.adapters.kubernetes.api import ClusterApi
from leeward.adapters.kubernetes.client import ClusterClient, Endpoint
from tests.adapters.aws_stubs import StubbedAws
from tests.adapters.scripted_server import ScriptedServer
from tests.fakes.clock import FakeClock


class OpenKubeConfig:
    """A way into the scripted server; counts how often it was asked for something new."""

    def __init__(self, url):
        self.url = url
        self.tokens = 0
        self.lookups = 0

    def endpoint(self, *, fresh=False):
        self.lookups += fresh
        return Endpoint(url=self.url)

    def token(self, *, fresh=False):
        self.tokens += fresh
        return f"token-{self.tokens}"


class Connected:
    """A scripted server with a client on it. Its clock jumps where the client would wait."""

    def __init__(self, *script):
        self.server = ScriptedServer(*script)
        self.kube_config = OpenKubeConfig(self.server.url)
        self.clock = FakeClock()
        self.client = ClusterClient("blue", self.kube_config, self.clock)
        self.api = ClusterApi(self.client)

    @property
    def seen(self):
        return self.server.seen


@pytest.fixture
def connect():
    """`connect(reply, reply ...)` gives a client of a server that answers so."""
    made = []

    def make(*script):
        made.append(Connected(*script))
        return made[-1]

    yield make
    for connected in made:
        connected.client.close()
        connected.server.close()


@pytest.fixture
def aws_environment(monkeypatch):
    """Credentials that are no secret, and nothing of the machine's own configuration."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def aws(aws_environment):
    """AWS that answers only what the test expects of it."""
    stubbed = StubbedAws()
    yield stubbed
    stubbed.finish()
