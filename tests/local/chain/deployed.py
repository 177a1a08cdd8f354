"""The deployed local stack of one folder of chain tests, its network and its webhook.

Each folder's conftest.py imports these fixtures: a fixture of scope `package` is made for the package whose conftest
names it, so that the folders share no stack where one process runs both."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local import fleet
from local.demo import scenario
from local.fleet import Network
from local.stack import ROOT, LocalStack
from local.workloads import apply_roles
from tests.local.chain.webhook import Webhook, listening
from tests.tools import need


@pytest.fixture(scope="package")
def webhook() -> Iterator[Webhook]:
    """Who is reported of every termination on the stack."""
    with listening() as found:
        yield found


def settings(stack: LocalStack, webhook: Webhook) -> dict[str, Any]:
    """The demo's, those beside this file, and a document that names the webhook."""
    document = {"apiVersion": "leeward.dev/v1", "kind": "ClusterSettings", "metadata": {"name": stack.cluster}}
    path = stack.directory / "settings.yaml"
    path.write_text(json.dumps({**document, "spec": {"webhook": {"url": webhook.url}}}))
    found = scenario.settings(stack)
    beside = Path(__file__).parent.joinpath("policy.yaml").relative_to(ROOT)
    found["clusters"][0]["policies"] += [str(beside), str(path)]
    return found


@pytest.fixture(scope="package")
def folder(request: pytest.FixtureRequest) -> str:
    """The folder of tests that these fixtures are made for, from the root."""
    return str(request.node.nodeid)


@pytest.fixture(scope="package")
def stack(folder: str, tmp_path_factory: pytest.TempPathFactory, webhook: Webhook) -> Iterator[LocalStack]:
    """Deployed once, and gone after the last of these tests: it reckons on for as long as it is there.

    Its policy is the demo's, which selects web-*."""
    need("kubectl")
    directory = tmp_path_factory.mktemp(f"stack-{Path(folder).name}")
    with LocalStack(directory=directory, boot_delay=0.5, termination_scale=0.1, pod_start=0.3) as running:
        running.deploy(settings(running, webhook))
        apply_roles(running)
        # At a moment of their own choosing fn sync would put a hook on a group that a test means to have none on, fn
        # decide find nodes that are empty, fn reconciler do first what a test calls it for.
        for name in ("sync", "disruption-planner", "reconciler"):
            running.client("events").disable_rule(Name=f"leeward-{name}-schedule")
        yield running


@pytest.fixture(scope="package")
def network(stack: LocalStack) -> Network:
    """One VPC with a subnet a zone."""
    return fleet.build_network(stack)
