"""A package as `make package` writes it, and stacks that are installed from packages."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local import fleet
from local.demo import ledger, scenario
from local.fleet import GroupPlan
from local.installation import Package, install
from local.stack import ROOT, LocalStack
from local.workloads import apply_roles
from tests.local.chain.conftest import NUMBERS, Crew
from tests.tools import need

POLICY = ROOT / "local" / "demo" / "policy.yaml"
SCHEDULED = ("sync", "disruption-planner", "reconciler")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this tree's package."""
    from supply_chain.package import main

    made = tmp_path_factory.mktemp("package")
    assert main(ROOT, made) == 0
    return made


@pytest.fixture(scope="session")
def package(folder: Path) -> Package:
    """This tree's package."""
    return Package.in_folder(folder)


@contextmanager
def installed(directory: Path, package: Package) -> Iterator[LocalStack]:
    """A stack that has nothing but this package: no bootstrap, no policies."""
    need("kubectl")
    with LocalStack(directory=directory, boot_delay=0.5, termination_scale=0.1, pod_start=0.3) as running:
        parameters = {
            "Cluster1": running.cluster,
            "NodeRoleArns": f"arn:aws:iam::{running.account}:role/nodes",
            "AssetBucket": "leeward-assets",
        }
        install(running, package, parameters)
        apply_roles(running)
        for name in SCHEDULED:  # a test says when they run
            running.client("events").disable_rule(Name=f"leeward-{name}-schedule")
        yield running


def two_nodes(stack: LocalStack) -> Crew:
    """A group of two spot nodes, Ready."""
    name = f"web-{next(NUMBERS)}"
    fleet.build_group(stack, fleet.build_network(stack), GroupPlan(name=name, size=2, spot=True))
    members = [str(member["InstanceId"]) for member in fleet.instances_of(stack, name)]
    team = Crew(stack=stack, group=name, instances=members)

    def ready() -> bool:
        nodes = ledger.nodes(stack)
        return all(each in nodes and scenario.is_ready(nodes[each]) for each in members)

    team.until(ready, "nodes Ready")
    return team


def run_leeward(stack: LocalStack, application: str = "a-person") -> Callable[..., subprocess.CompletedProcess[str]]:
    """The `leeward` command with the rights of a person in the cluster; its calls are recorded as the application's."""
    arn, eks = stack.client("sts").get_caller_identity()["Arn"], stack.client("eks")
    if arn not in eks.list_access_entries(clusterName=stack.cluster)["accessEntries"]:
        groups = ["leeward:read", "leeward:taint"]
        eks.create_access_entry(clusterName=stack.cluster, principalArn=arn, kubernetesGroups=groups)
    stack.take_over_access_entries()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "leeward.cli.main", *arguments, "--cluster", stack.cluster],
            env=stack.environment() | {"AWS_SDK_UA_APP_ID": application},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
