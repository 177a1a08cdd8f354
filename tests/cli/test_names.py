"""A node is called by its name, `node/NAME`, a unique short name or its instance's id; mistakes name the nearest."""

import json
from dataclasses import replace

import pytest

from leeward.adapters import wiring
from tests.cli.command import NOON, SMALL, a_snapshot
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, a_policy, an_instance, policies
from tests.fakes.system import FakeSystem

LONG, TWIN = "ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"
LIVE = ("--cluster", CLUSTER, "--now", NOON, "-o", "json")


@pytest.fixture
def folder(tmp_path):
    """node-a and node-b have the names that EC2 gives; a third node shares the short name of the second."""
    nodes = json.loads((SMALL / "nodes.json").read_text())
    one, two, three = nodes["items"][:3]
    one["metadata"]["name"], two["metadata"]["name"], three["metadata"]["name"] = LONG, TWIN, f"{TWIN}.example"
    three["metadata"]["name"] = "ip-10-0-0-2.example"
    pods = json.loads((SMALL / "pods.json").read_text())
    for pod in pods["items"]:
        pod["spec"]["nodeName"] = LONG
    return a_snapshot(tmp_path, nodes=nodes, pods=pods)


@pytest.fixture
def system(monkeypatch):
    found = FakeSystem(
        instances=[an_instance("i-0a1"), an_instance("i-0b1")],
        groups=[a_group(GROUP, "i-0a1", "i-0b1")],
        nodes=[replace(a_node("i-0a1"), name=LONG), replace(a_node("i-0b1"), name=TWIN)],
        written=policies(a_policy()),
    )
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


def instance_of(name):
    nodes = json.loads((SMALL / "nodes.json").read_text())["items"]
    return next(node["spec"]["providerID"] for node in nodes if node["metadata"]["name"] == name).rpartition("/")[2]


@pytest.mark.parametrize("reference", [LONG, f"node/{LONG}", f"nodes/{LONG}", "ip-10-0-0-1", "node/ip-10-0-0-1"])
def test_a_node_of_a_folder_has_several_names(leeward, folder, reference):
    offline = ("--snapshot", folder, "--now", NOON, "-o", "json")
    assert leeward("drain", reference, *offline).json["node"] == LONG
    assert leeward("blockers", reference, *offline).code == 0


def test_an_instance_id_is_a_name(leeward):
    result = leeward("drain", instance_of("node-a"), "--snapshot", SMALL, "--now", NOON, "-o", "json")
    assert result.json["node"] == "node-a"


def test_a_short_name_of_several_nodes_is_refused(leeward, folder):
    reported = leeward.refuses("drain", "ip-10-0-0-2", "--snapshot", folder)
    assert reported == (f"found 2 nodes with the short name 'ip-10-0-0-2', expected one of {TWIN}, ip-10-0-0-2.example")


@pytest.mark.parametrize("reference", [LONG, f"node/{LONG}", "ip-10-0-0-1", "i-0a1", "node/i-0a1"])
def test_a_live_node_has_several_names(leeward, system, reference):
    assert leeward("drain", reference, "--dry-run", *LIVE).json["node"] == LONG
    assert leeward("blockers", reference, *LIVE).code == 0


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("drain", "ip-10-0-1.ec2.internal", "--dry-run"), LONG),
        (("blockers", "node/ip-10-0-02.ec2.internal"), TWIN),
        (("drain", "i-0a2", "--dry-run"), "i-0a1"),
        (("drain", "--group", "web_a", "--dry-run"), GROUP),
        (("inspect", "template", "web"), GROUP),
        (("inspect", "place", "we-a", "--count", "1", "--pods", "1"), GROUP),
        (("upgrade", "plan", "webb"), GROUP),
        (("upgrade", "status", "webb"), GROUP),
    ],
)
def test_a_mistake_names_the_nearest_also_live(leeward, system, arguments, hint):
    assert leeward.refuses(*arguments, *LIVE).endswith(f"; did you mean {hint}?")


def test_nothing_alike_gives_no_hint(leeward, system):
    assert "did you mean" not in leeward.refuses("drain", "zzz", "--dry-run", *LIVE)
