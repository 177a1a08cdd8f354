"""Every table, letter by letter, at 80 and at 120 columns (tests/cli/golden/README.md)."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.command import NOON, SMALL
from tests.cli.live_answers import ANSWERS
from tests.cli.snapshots import placement, upgrade
from tests.cli.snapshots.disruption import POLICY, a_disruption_snapshot, a_group, a_pod, a_template
from tests.cli.snapshots.placement import items
from tests.cli.snapshots.zones import a_zone_snapshot

GOLDEN = Path("tests/cli/golden")
BLOCKERS = Path("tests/cli/snapshots/blockers")
EVENT = Path("tests/events/spot_interruption.json")
WRITE = "GOLDEN_WRITE"


def disruption(folder):
    """Three nodes; a budget holds the pod of n1."""
    pods = [a_pod("p1", "n1", labels={"app": "api"}), a_pod("p2", "n2"), a_pod("p3", "n3")]
    budget = {
        "metadata": {"namespace": "shop", "name": "api"},
        "spec": {"selector": {"matchLabels": {"app": "api"}}},
        "status": {"disruptionsAllowed": 0},
    }
    return a_disruption_snapshot(folder, pods=items(*pods), pdbs=items(budget))


def switched_off(folder):
    policy = POLICY.replace("consolidateAfter: 0s", "consolidationPolicy: Never, drift: false")
    return a_disruption_snapshot(folder, policy=policy)


def drifted(folder):
    templates = [a_template("lt-web", "m5.xlarge", image="ami-2"), a_template("lt-batch", "m5.large")]
    return a_disruption_snapshot(folder, launch_template_versions={"LaunchTemplateVersions": templates})


def renamed(folder):
    """Each instance of the present version has another name than its template says."""
    group, template = a_group("web", "lt-web", "n1", "n2", "n3"), a_template("lt-web", "m5.xlarge")
    for member in group["Instances"]:
        member["LaunchTemplate"] = {"LaunchTemplateId": "lt-web", "Version": "1"}
    tags = [{"Key": "Name", "Value": "web"}]
    template["LaunchTemplateData"]["TagSpecifications"] = [{"ResourceType": "instance", "Tags": tags}]
    return a_disruption_snapshot(
        folder,
        auto_scaling_groups={"AutoScalingGroups": [group]},
        launch_template_versions={"LaunchTemplateVersions": [template]},
    )


def blocked_upgrade(folder):
    return upgrade.an_upgrade_snapshot(folder, pdbs={"items": [upgrade.a_pdb(allowed=0, maxUnavailable=0)]})


def blocked_status(folder):
    nodes = [upgrade.a_node(0, disrupted=True), upgrade.a_node(1), upgrade.a_node(2, version=2)]
    pods = [upgrade.a_pod("web-0", 0)]
    return upgrade.an_upgrade_snapshot(folder, nodes=nodes, pods=pods, pdbs={"items": [upgrade.a_pdb(allowed=0)]})


OFFLINE = {
    "plan": (disruption, "plan"),
    "plan-wide": (disruption, "plan", "-o", "wide", "--pods"),
    "plan-verbose": (disruption, "plan", "--verbose"),
    "plan-nothing": (switched_off, "plan"),
    "plan-what-if": (switched_off, "plan", "--what-if", "consolidation"),
    "plan-name": (disruption, "plan", "-o", "name"),
    "budget": (disruption, "budget"),
    "drift": (drifted, "drift"),
    "drift-not-fixable": (renamed, "drift"),
    "drift-sorted": (drifted, "drift", "-o", "wide", "--sort-by", "field", "--no-headers"),
    "blockers": (BLOCKERS, "blockers"),
    "blockers-wide": (BLOCKERS, "blockers", "-o", "wide"),
    "blockers-verbose": (BLOCKERS, "blockers", "--verbose", "--no-headers"),
    "blockers-none": (BLOCKERS, "blockers", "node-b"),
    "drain": (SMALL, "drain", "node-a", "--dry-run"),
    "drain-group": (SMALL, "drain", "--group", "web-1", "--dry-run"),
    "explain-event": (SMALL, "explain-event", EVENT, "-o", "wide"),
    "ips": (None, "ips", "--instance-type", "m5.large", "--pods", "12", "-o", "wide"),
    "place": (placement.a_placement_snapshot, "place", "web", "--count", "3", "--pods", "8"),
    "zones": (placement.a_placement_snapshot, "zones"),
    "zone-evacuate": (a_zone_snapshot, "zone", "evacuate", "us-east-1a"),
    "zone-status": (a_zone_snapshot, "zone", "status"),
    "top": (disruption, "top"),
    "top-wide": (disruption, "top", "-o", "wide", "--sort-by", "pods"),
    "top-unknown": (BLOCKERS, "top"),
    "template": (blocked_upgrade, "template", "web", "-o", "table"),
    "upgrade-plan": (blocked_upgrade, "upgrade", "plan", "web"),
    "upgrade-status": (blocked_status, "upgrade", "status", "web"),
}
WIDTHS = ("80", "120")


def check(name, printed, folder):
    """Compare with the file, or write it and fail."""
    file, text = GOLDEN / f"{name}.txt", printed.replace(str(folder), "DIR")
    if os.environ.get(WRITE):
        file.write_text(text)
        pytest.fail(f"{file} is written ({WRITE}): read the difference, then run without it")
    assert text == file.read_text(), f"{file} is not what is printed; {GOLDEN}/README.md says how to write it"


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", request.param)
    return request.param


@pytest.mark.parametrize("name", OFFLINE)
def test_a_table_of_a_folder(leeward, tmp_path, width, name):
    source, *arguments = OFFLINE[name]
    folder = source(tmp_path) if callable(source) else source
    offline = () if folder is None else ("--snapshot", folder, "--now", NOON)
    check(name, leeward(*arguments, *offline).out, tmp_path)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_table_of_a_cluster(leeward, tmp_path, monkeypatch, width, name):
    """Standard error too: a refusal stands there."""
    result = leeward(*ANSWERS[name](monkeypatch, tmp_path))
    check(name, result.out + result.err, tmp_path)


def test_every_golden_file_is_compared():
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {*OFFLINE, *ANSWERS}


@pytest.mark.parametrize("columns", [80, 120])
def test_a_terminal_shows_what_a_pipe_gets(columns):
    """A real terminal of this width, without colours: the lines of the golden file."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "leeward.cli.main", "blockers", "--snapshot", str(BLOCKERS), "--now", NOON]
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": "functions"}
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
    os.close(ours)
    assert process.returncode == 0
    assert printed.decode().replace("\r\n", "\n") == (GOLDEN / "blockers.txt").read_text()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


def test_what_a_table_shows_is_in_the_json_too(leeward, tmp_path):
    """The dollars, groups, types and zones of `plan`."""
    folder = disruption(tmp_path)
    document = json.loads(leeward("plan", "--snapshot", folder, "--now", NOON, "-o", "json").out)
    price = document["summary"]["pricePerMonth"]["now"]
    assert f"${price:,.2f} a month" in (GOLDEN / "plan.txt").read_text()
