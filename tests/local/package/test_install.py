"""An installation without a clone: the asset in a bucket, the stack from the template, policies by command."""

import json
import subprocess

import pytest

from leeward import __version__
from local import fleet
from local.demo import ledger, scenario
from local.installation import outputs
from tests.local.package.conftest import POLICY, installed, run_leeward, two_nodes

pytestmark = [pytest.mark.local, pytest.mark.long]


@pytest.fixture(scope="module")
def stack(tmp_path_factory, package):
    """Installed from this tree's package."""
    with installed(tmp_path_factory.mktemp("install"), package) as running:
        yield running


@pytest.fixture(scope="module")
def leeward(stack):
    return run_leeward(stack)


def test_the_sums_are_those_of_the_files(folder):
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = {line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert listed == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    kinds = ("*.template.json", "*.zip", "*.whl", "*.cdx.json", "cluster-role.yaml")
    assert [kind for kind in kinds if len(list(folder.glob(kind))) != 1] == []


def test_policies_are_applied_and_then_a_spot_warning_drains_a_node(stack, leeward):
    done = leeward("policy", "apply", str(POLICY), "--yes")
    assert done.returncode == 0, done.stderr
    team = two_nodes(stack)
    victim = team.instances[0]
    team.run_pods(fleet.deployment("app", 3, grace=5), fleet.budget("app", maxUnavailable=1), instance=victim)
    team.stack.kubectl("label", "node", team.node_name(team.instances[1]), f"group={team.group}")
    stack.emit(scenario.spot_warning(stack, victim))
    record = team.closed(victim)
    assert record.outcome == "terminated"
    assert record.evicted == 3
    assert victim not in ledger.nodes(stack)
    assert team.violations("app") == []


def test_the_deployed_version_is_an_output_and_in_doctor(stack, leeward):
    assert outputs(stack)["Version"] == __version__
    findings = json.loads(leeward("doctor", "-o", "json").stdout)["findings"]
    (version,) = [found for found in findings if found["object"] == "version"]
    assert version["state"] == "ok"
    assert __version__ in version["found"]
