"""A deployed stack of this folder's own, and the `leeward` command, live against it with the caller's credentials."""

import subprocess
import sys

import pytest

from tests.local.chain.deployed import folder, network, stack, webhook

__all__ = ["folder", "leeward", "network", "stack", "webhook"]


@pytest.fixture
def leeward(stack):
    """Run the command as a person with access to the cluster would; answers (exit code, stdout, stderr)."""
    arn = stack.client("sts").get_caller_identity()["Arn"]
    eks = stack.client("eks")
    if arn not in eks.list_access_entries(clusterName=stack.cluster)["accessEntries"]:
        groups = ["leeward:read", "leeward:taint"]
        eks.create_access_entry(clusterName=stack.cluster, principalArn=arn, kubernetesGroups=groups)
    stack.take_over_access_entries()

    def run(*arguments, stdin=None):
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
