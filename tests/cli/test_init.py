"""`leeward init`: the file that it writes is a valid policy whatever the cluster's names are, and explains itself."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leeward.adapters import wiring
from leeward.cli.first_policy import FirstPolicyFacts, first_policy
from leeward.model.group import LifecycleHook
from leeward.model.instance import CapacityType
from leeward.model.pod import PodDisruptionBudget
from leeward.policy.document import NO_DISRUPTION
from leeward.policy.parse import parse_documents
from leeward.policy.repair import NO_REPAIR
from tests.cli.command import SMALL
from tests.fakes.builders import CLUSTER, a_group, a_node, an_instance
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/init.json").read_text())


@pytest.fixture
def system(monkeypatch):
    spot = replace(an_instance("i-0abc"), capacity_type=CapacityType.SPOT)
    on_demand = replace(an_instance("i-0def"), capacity_type=CapacityType.ON_DEMAND)
    groups = [a_group("web", "i-0abc", "i-0def"), a_group("batch")]
    found = FakeSystem(instances=[spot, on_demand], groups=groups, nodes=[a_node("i-0abc")])
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


@pytest.fixture
def init(leeward, tmp_path):
    def run(*arguments, code=0):
        to = tmp_path / "policy.yaml"
        result = leeward("init", "--to", str(to), *(arguments or ("--cluster", CLUSTER)), "-o", "json")
        assert result.code == code, result.err
        if code:
            return result.err
        jsonschema.validate(result.json, SCHEMA)
        return to.read_text()

    return run


def parsed(text):
    return parse_documents([("policy.yaml", document) for document in yaml.safe_load_all(text)], cluster=CLUSTER)


def test_it_selects_the_groups_of_the_cluster_and_switches_nothing_voluntary_on(init, system):
    (policy,) = parsed(init()).policies
    assert policy.selector.groups == ("batch", "web")
    assert (policy.disruption, policy.repair) == (NO_DISRUPTION, NO_REPAIR)
    assert policy.interruption.enabled


def test_what_is_commented_out_is_valid_too(init, system):
    """A reader takes the mark away before each line of a section."""
    lines = init().splitlines()
    begins = lines.index("  # disruption:")
    opened = [line.replace("  # ", "  ", 1) for line in lines[begins:] if ": " in line or line.endswith(":")]
    opened = [line for line in opened if not line.startswith("  Without")]
    (policy,) = parsed("\n".join([*lines[:begins], *opened])).policies
    assert policy.disruption.present
    assert policy.repair.enabled


def test_each_group_says_what_it_has(init, system):
    text = init()
    assert '"web" # 2 nodes, 1 spot, 1 on-demand, m5.large' in text
    assert '"batch" # 0 nodes' in text


def test_hooks_and_budgets_and_other_controllers_are_named(init, system):
    hook = LifecycleHook(name="drain-me", group="web", transition="autoscaling:EC2_INSTANCE_TERMINATING")
    system.groups.hooks_of["web"] = [hook, replace(hook, name="leeward-terminate")]
    none = PodDisruptionBudget(namespace="shop", name="api", selector={}, disruptions_allowed=0, expected_pods=3)
    system.kubernetes.budget_list.append(none)
    text = init()
    assert '# hooks: ["drain-me"]' in text
    assert "# These PodDisruptionBudgets allow no eviction now: shop/api" in text


def test_a_cluster_that_does_not_answer_is_said_and_its_groups_are_written(init, system):
    system.kubernetes.down = True
    text = init()
    assert "# Not read: pods: " in text
    assert parsed(text).policies


def test_a_file_that_is_there_is_not_replaced_without_yes(init, system, tmp_path):
    (tmp_path / "policy.yaml").write_text("mine")
    assert "--yes" in init(code=2)
    assert (tmp_path / "policy.yaml").read_text() == "mine"
    assert "NodePolicy" in init("--cluster", CLUSTER, "--yes")


def test_a_cluster_without_groups_has_no_policy(init, system):
    system.groups.by_name.clear()
    assert "found no Auto Scaling group" in init(code=2)


def test_it_says_what_to_do_next_a_line_each(leeward, system, tmp_path):
    shown = leeward("init", "--cluster", CLUSTER, "--to", str(tmp_path / "p.yaml"))
    assert shown.out.splitlines() == [
        f"wrote {tmp_path}/p.yaml: 2 Auto Scaling groups",
        "next:",
        f"  leeward policy validate {tmp_path}/p.yaml",
        f"  leeward plan --cluster {CLUSTER} --what-if consolidation",
    ]


def test_it_works_on_a_snapshot(init):
    assert parsed(init("--snapshot", SMALL)).policies


@given(st.text(min_size=1, max_size=20), st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_whatever_the_names_are_the_policy_is_valid_and_says_no_more(name, cluster, hook):
    """Names are text of others: none ends a comment or begins a key."""
    hooks = {name: [LifecycleHook(name=hook, group=name, transition="autoscaling:EC2_INSTANCE_TERMINATING")]}
    text = first_policy(FirstPolicyFacts(cluster=cluster, groups=[a_group(name)], hooks=hooks, unread=[hook]))
    document = yaml.safe_load(text)
    assert set(document["spec"]) == {"selector", "interruption", "drain"}
    assert document["spec"]["selector"]["groups"] == [name]
