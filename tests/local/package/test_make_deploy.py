"""`make deploy` without a terminal: YES=1 deploys, without it a change of rights is refused and not waited for."""

import os
import subprocess

import pytest

from local.stack import ROOT, LocalStack

pytestmark = [pytest.mark.local, pytest.mark.long]


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """An account that has never been deployed to."""
    with LocalStack(directory=tmp_path_factory.mktemp("make-deploy")) as running:
        yield running


def make(stack, *arguments):
    """Run the target as a CI job does: no terminal, no input. What `make setup` makes is there already."""
    environment = stack.environment() | {
        "PATH": os.environ["PATH"],
        "CDK_HOME": str(stack.directory / "cdk-home"),
        "CDK_OUTPUT": str(stack.directory / "cdk.out"),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
    }
    command = ["make", "--assume-old=setup", "deploy", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def stacks(stack):
    found = stack.client("cloudformation").describe_stacks()["Stacks"]
    return {one["StackName"]: one["StackStatus"] for one in found}


def test_without_yes_nothing_is_deployed_and_nothing_waits(stack):
    done = make(stack)
    assert done.returncode != 0
    assert "unable to get a confirmation" in done.stdout + done.stderr
    assert "Leeward" not in stacks(stack)


def test_with_yes_it_deploys_without_a_question(stack):
    done = make(stack, "YES=1")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert stacks(stack)["Leeward"] == "CREATE_COMPLETE"
    assert "(y/n)" not in done.stdout + done.stderr
