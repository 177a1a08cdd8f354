"""`make local` and `make spot` as a person runs them: in two terminals, the first one as a background job."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys

import pytest

from local.aws.settings import KUBERNETES_VERSION
from local.interactive import playground, state
from tests.local.processes import PATIENCE, processes_in, stack_of

pytestmark = [pytest.mark.local, pytest.mark.long]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def local(directory):
    """The running stack, started as a shell without job control starts `make local &`: with SIGINT ignored."""
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    with stack_of([*deaf, sys.executable, "-m", "local", "--dir", str(directory)], directory) as process:
        yield process


def exported(text):
    """The variables that lines of a shell export."""
    return {name: shlex.split(value)[0] for name, value in re.findall(r"^ *export (\w+)=(\S+)$", text, re.MULTILINE)}


def started(directory, *arguments):
    return started_module(directory, "local.interactive", *arguments)


def started_module(directory, module, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments, "--dir", str(directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def leeward(directory, *arguments):
    """What the command of a second terminal ends with."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        [sys.executable, "-m", "leeward.cli.main", *arguments],
        env={**environment, **exported((directory / "env").read_text())},
        capture_output=True,
        text=True,
        check=False,
    )


def document(directory, *arguments):
    """Its JSON. Nothing is on standard error, and no warning in it."""
    done = leeward(directory, *arguments, "--cluster", "demo", "-o", "json")
    assert (done.returncode, done.stderr) == (0, ""), (arguments, done.stdout)
    found = json.loads(done.stdout)
    assert found.get("warnings", []) == [], arguments
    return found


def test_what_it_prints_is_what_a_second_terminal_needs(local, directory):
    output = (directory / "output").read_text()
    variables = exported(output)
    assert variables == exported((directory / "env").read_text())
    assert variables["AWS_REGION"] == variables["AWS_DEFAULT_REGION"] == "us-east-1"
    for command in re.findall(r"^  \.venv/bin/leeward ((?:doctor|plan|blockers) .*)$", output, re.MULTILINE):
        done = leeward(directory, *shlex.split(command))
        assert done.returncode in {0, 1}, (command, done.stderr)
        assert "unknown" not in re.sub(r"\d+ unknown", "", done.stdout), (command, done.stdout)
    assert len(re.findall(r"^  make (spot|rebalance|maintenance|scale-in) ", output, re.MULTILINE)) == 4


def test_every_price_and_quota_is_known_and_no_answer_carries_a_warning(local, directory, tmp_path):
    nodes = document(directory, "top")["nodes"]
    assert [node["name"] for node in nodes if not node["pricePerHour"]] == []
    assert document(directory, "plan", "--what-if", "consolidation")["summary"]["pricePerMonth"]["now"]
    found = document(directory, "upgrade", "plan", "web-on-demand", "--ami", f"al2023@{KUBERNETES_VERSION}")
    assert (bool(found["surgeCost"]), found["findings"]) == (True, [])
    assert {finding["state"] for finding in document(directory, "doctor")["findings"]} == {"ok"}
    document(directory, "snapshot", "--to", str(tmp_path / "snapshot"))


def test_nodes_and_images_are_of_the_version_of_the_control_plane(local, directory):
    stack = state.running(directory)
    assert playground.kubernetes_version(stack) == KUBERNETES_VERSION
    nodes = stack.kubernetes("GET", "/api/v1/nodes")["items"]
    kubelets = {node["status"]["nodeInfo"]["kubeletVersion"].rpartition(".")[0] for node in nodes}
    assert kubelets == {f"v{KUBERNETES_VERSION}"}
    instances = stack.client("ec2").describe_instances()["Reservations"]
    ids = {instance["ImageId"] for reservation in instances for instance in reservation["Instances"]}
    images = stack.client("ec2").describe_images(ImageIds=sorted(ids))["Images"]
    assert {f"-{KUBERNETES_VERSION}-v" in image["Name"] for image in images} == {True}


def test_a_policy_is_applied_without_a_deployment(local, directory, tmp_path):
    changed = tmp_path / "policy.yaml"
    changed.write_text(playground.POLICY.read_text().replace("drift: false", "drift: true"))
    assert leeward(directory, "policy", "diff", str(changed), "--cluster", "demo").returncode == 1
    for policy in (changed, playground.POLICY):
        done = leeward(directory, "policy", "apply", str(policy), "--cluster", "demo", "--yes")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert leeward(directory, "policy", "diff", str(policy), "--cluster", "demo").returncode == 0


def test_events_of_the_same_moment_replace_different_nodes_and_are_followed_to_their_end(local, directory):
    runs = [started(directory, event) for event in ("spot", "spot", "rebalance", "maintenance", "scale-in")]
    outputs = [run.communicate(timeout=PATIENCE)[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * 5, outputs
    nodes = [re.search(r"about: \S+, (i-\w+), group (\S+),", output).groups() for output in outputs]
    assert len({instance for instance, _ in nodes}) == 5
    assert {group for _, group in nodes[:3]} == {"web-spot"}
    for output in outputs:
        assert re.search(r"^ +\d+\.\d s  sent: ", output, re.MULTILINE), output
        assert re.search(r"s  ip-\S+: gone, \d+ pods? evicted$", output, re.MULTILINE), output
    for output in outputs[:4]:
        assert "the replacement (i-" in output
    notified = started_module(directory, "local.interactive.notifications").communicate(timeout=PATIENCE)[0]
    assert len(re.findall(r"Node Termination Started: ", notified)) == 5, notified
    page = directory / "report.html"
    assert leeward(directory, "report", nodes[0][0], "--cluster", "demo", "--to", str(page)).returncode == 0
    assert "could not be read" not in page.read_text()


def test_an_interrupt_ends_it_and_leaves_no_process(local, directory):
    refused = subprocess.run(
        [sys.executable, "-m", "local", "--dir", str(directory)], capture_output=True, text=True, check=False
    )
    assert (refused.returncode, refused.stderr.startswith("make local is running already")) == (1, True)
    local.send_signal(signal.SIGINT)
    assert local.wait(PATIENCE) == 0
    assert (directory / "output").read_text().endswith("stopped\n")
    assert processes_in(directory) == []
    late = started(directory, "spot")
    assert late.communicate(timeout=PATIENCE)[0].startswith("no local stack is running")
    assert late.returncode == 2
