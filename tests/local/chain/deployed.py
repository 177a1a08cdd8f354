"""The deployed local stack of one folder of chain tests, its network and its webhook.

Each folder's conftest.py imports these fixtures: a fixture of scope `package` is made for the package whose conftest
names it, so that the folders share no stack where one process runs both."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local import fleet
from local.demo import scenario
from local.fleet import Network
from local.stack import ROOT, LocalStack
from local.workloads import apply_roles
from tests.local.chain.webhook import Webhook, listening
from tests.local.deployment import deploy
from tests.tools import need


@pytest.fixture(scope="package")
def webhook() -> Iterator[Webhook]:
    """Who is reported of every termination on the stack."""
    with listening() as found:
        yield found


def settings(stack: LocalStack, webhook: Webhook, folder: str) -> dict[str, Any]:
    """The demo's policies, those beside this file and in the folder of tests, and a document that names the webhook."""
    document = {"apiVersion": "leeward.dev/v1", "kind": "ClusterSettings", "metadata": {"name": stack.cluster}}
    path = stack.directory / "settings.yaml"
    path.write_text(json.dumps({**document, "spec": {"webhook": {"url": webhook.url}}}))
    found = scenario.settings(stack)
    beside = (Path(__file__).parent / "policy.yaml", ROOT / folder / "policy.yaml")
    policies = [str(one.relative_to(ROOT)) for one in beside if one.exists()]
    found["clusters"][0]["policies"] += [*policies, str(path)]
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
        deploy(running, settings(running, webhook, folder))
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


@pytest.fixture
def leeward(stack: LocalStack) -> Callable[..., tuple[int, str, str]]:
    """The command of a person with access to the cluster."""
    return command_of_a_user(stack)


def command_of_a_user(stack: LocalStack) -> Callable[..., tuple[int, str, str]]:
    """Give the caller an operator's access; return a run of `leeward`, which answers (exit code, stdout, stderr)."""
    arn = stack.client("sts").get_caller_identity()["Arn"]
    eks = stack.client("eks")
    if arn not in eks.list_access_entries(clusterName=stack.cluster)["accessEntries"]:
        groups = ["leeward:read", "leeward:taint"]
        eks.create_access_entry(clusterName=stack.cluster, principalArn=arn, kubernetesGroups=groups)
    stack.take_over_access_entries()

    def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        where = () if "--snapshot" in arguments else ("--cluster", stack.cluster)
        done = subprocess.run(
            [sys.executable, "-m", "leeward.cli.main", *arguments, *where, "-o", "json"],
            env=stack.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run
