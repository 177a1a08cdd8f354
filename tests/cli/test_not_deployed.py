"""Live commands on a cluster where Leeward is not deployed: what only reads still answers, and says so once."""

from dataclasses import replace

import pytest

from leeward.adapters import wiring
from leeward.errors import NotDeployedError
from leeward.model.launch import LaunchSettings, LaunchSource, LaunchTemplateRef
from leeward.policy.document import ClusterPolicies, ClusterSettings
from leeward.ports.kubernetes import Listed
from tests.cli.snapshots.disruption import a_node as a_raw_node
from tests.cli.snapshots.disruption import a_pod as a_raw_pod
from tests.fakes.builders import CLUSTER, GROUP, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem

LIVE = ("--cluster", CLUSTER)
SAID = "Leeward is not deployed there: DynamoDB has no table leeward"
UNKNOWN = "terminations, upgrades, runs and zonal shifts under way are not known"
READS = {
    "claims": ("read", "open_instances", "open_records"),
    "upgrades": ("read",),
    "disruptions": ("read",),
    "catalog": ("read", "zonal_shifts"),
}


@pytest.fixture
def system(monkeypatch):
    group = a_group(GROUP, "i-n1")
    old = LaunchTemplateRef(id=f"lt-{GROUP}", name=GROUP, version="1")
    members = tuple(replace(one, type="m5.large", template=old) for one in group.instances)
    launch = LaunchSource(template=replace(old, version="2"))
    system = FakeSystem(
        instances=[an_instance("i-n1", spot=False)],
        groups=[replace(group, instances=members, launch=launch)],
        nodes=[a_node("i-n1")],
        written=ClusterPolicies(settings=ClusterSettings(name=CLUSTER)),
        origins=frozenset({("111122223333", "eu-west-1")}),
    )
    system.templates.version_for(old, "ami-2", token="t")
    system.launches.by_group[GROUP] = LaunchSettings(image="ami-2", instance_type="m5.large")
    system.kubernetes.raw = {Listed.NODES: [a_raw_node("n1")], Listed.PODS: [a_raw_pod("p1", "n1")]}
    for port, methods in READS.items():
        for method in methods:
            getattr(system, port).fail(method, NotDeployedError(SAID))
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_, **__: system.ports)
    return system


def test_an_upgrade_is_planned_and_says_in_one_line_what_is_not_known(leeward, system):
    result = leeward("upgrade", "plan", GROUP, *LIVE)
    assert (result.code, result.err) == (0, "")
    assert "1 node to replace" in result.out
    assert result.out.count(SAID) == 1
    assert f"NotSelected   group {GROUP}   {SAID}; {UNKNOWN}: the defaults are taken" in result.out
    assert result.out.endswith("Nothing blocks it.\n")
    assert "NotJudged" not in result.out


@pytest.mark.parametrize(
    "command", [("plan", "--what-if", "consolidation"), ("drift",), ("inspect", "budget")], ids=str
)
def test_other_plans_say_it_once(leeward, system, command):
    result = leeward(*command, *LIVE)
    assert (result.code, result.err) == (0, "")
    assert [line for line in result.out.splitlines() if "deployed" in line] == [f"{SAID}; {UNKNOWN}"]
    assert "cannot be read" not in result.out


def test_a_drain_is_shown_and_not_begun(leeward, system):
    assert leeward("drain", "node-i-n1", "--dry-run", *LIVE).code == 0
    refused = leeward("drain", "node-i-n1", "--yes", *LIVE)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"leeward: {SAID} (account 111122223333, Region eu-west-1)\n"
    assert system.executions.started == []


@pytest.mark.parametrize(
    "command",
    [("upgrade", "status", GROUP), ("upgrade", "start", GROUP, "--yes"), ("upgrade", "abort", GROUP, "--yes")],
    ids=" ".join,
)
def test_what_needs_records_says_it_with_account_and_region(leeward, system, command):
    result = leeward(*command, *LIVE)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"leeward: {SAID} (account 111122223333, Region eu-west-1)\n"
