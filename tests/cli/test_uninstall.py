"""`leeward uninstall`: everything of ours comes off, nothing else does, and what is at work is left."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leeward.adapters import wiring
from leeward.errors import AccessDeniedError, TerminalError
from leeward.model import well_known
from leeward.model.group import LifecycleHook
from leeward.model.node import Taint, disruption_taint
from leeward.model.termination import Cause, CauseKind
from tests.cli.command import SMALL, a_snapshot
from tests.fakes.builders import (
    CLUSTER,
    DEPLOYMENT,
    GROUP,
    a_group,
    a_node,
    a_policy,
    a_subject,
    an_instance,
    our_hook,
    policies,
)
from tests.fakes.clock import START
from tests.fakes.system import FakeSystem

SCHEMA = json.loads(Path("docs/schema/uninstall.json").read_text())
FOREIGN = LifecycleHook(name="other-team", group=GROUP, transition="autoscaling:EC2_INSTANCE_TERMINATING")
I, NODE = "i-0abc", "node-i-0abc"  # noqa: E741
TAINT = disruption_taint(DEPLOYMENT)
THEIRS = {"leeward.dev/do-not-disrupt": "true", "team": "web"}


def a_system(paused="all"):
    """A node with all that we put on nodes, one with nothing, a group with our hook and another team's."""
    node = replace(
        a_node(I),
        taints=(Taint(key="team", effect="NoSchedule"), TAINT),
        unschedulable=True,
        finalizers=("other.dev/backup", well_known.FINALIZER),
        labels={well_known.SUBNET_LABEL: "subnet-a", "team": "web"},
        annotations={**THEIRS, well_known.EXPIRED: "true", well_known.CORDONED_BY_DRAIN: "true"},
    )
    return FakeSystem(
        instances=[an_instance(I), an_instance("i-0def")],
        groups=[a_group(GROUP, I, "i-0def")],
        hooks=[our_hook(), FOREIGN],
        nodes=[node, replace(a_node("i-0def"), labels={})],
        written=policies(a_policy(), paused=paused),
    )


@pytest.fixture
def system(monkeypatch):
    found = a_system()
    monkeypatch.setattr(wiring, "command_line_ports", lambda *_: found.ports)
    return found


@pytest.fixture
def uninstall(leeward, system):
    def run(*arguments, code=0):
        result = leeward("uninstall", "--cluster", CLUSTER, "-o", "json", "--yes", *arguments)
        assert result.code == code, result.err
        jsonschema.validate(result.json, SCHEMA)
        return result.json

    return run


def test_everything_of_ours_comes_off_and_is_named(uninstall, system):
    reported = uninstall()
    assert reported["nodes"] == [
        {
            "node": NODE,
            "removed": [
                "finalizer leeward.dev/termination",
                "taint leeward.dev/disrupted",
                "cordon",
                "label leeward.dev/subnet-id",
                "annotation leeward.dev/cordoned-by-drain",
                "annotation leeward.dev/expired",
            ],
        }
    ]
    assert reported["hooks"] == [{"group": GROUP, "hook": "leeward-terminate"}]
    assert (reported["done"], reported["left"]) == (True, [])
    node = system.kubernetes.by_name[NODE]
    assert (node.finalizers, node.labels, node.annotations) == (("other.dev/backup",), {"team": "web"}, THEIRS)
    assert ([taint.key for taint in node.taints], node.unschedulable) == (["team"], False)
    assert system.groups.hooks_of[GROUP] == [FOREIGN]


def test_a_second_time_finds_nothing(uninstall):
    uninstall()
    assert uninstall() == {"done": True, "nodes": [], "hooks": [], "left": []}


def test_a_dry_run_changes_nothing(uninstall, system):
    before = dict(system.kubernetes.by_name)
    reported = uninstall("--dry-run")
    assert (reported["done"], len(reported["nodes"]), len(reported["hooks"])) == (False, 1, 1)
    assert system.kubernetes.by_name == before
    assert len(system.groups.hooks_of[GROUP]) == 2


def test_a_cluster_that_is_not_paused_is_refused(uninstall, system):
    """Everything would be put back within minutes."""
    system.clusters.policies_of[CLUSTER] = policies(a_policy())
    reported = uninstall(code=1)
    assert (reported["done"], reported["left"][0]["what"]) == (False, f"cluster {CLUSTER}")
    assert well_known.FINALIZER in system.kubernetes.by_name[NODE].finalizers


def test_without_any_policy_nothing_would_put_it_back(uninstall, system):
    del system.clusters.policies_of[CLUSTER]
    assert uninstall()["done"]


def test_a_node_that_is_being_terminated_is_left_with_its_hook(uninstall, system):
    cause = Cause(id="event", kind=CauseKind.SPOT_INTERRUPTION, at=START)
    system.claims.claim(a_subject(I), cause, START)
    reported = uninstall(code=1)
    assert {left["what"] for left in reported["left"]} == {f"node {NODE}", f"group {GROUP}"}
    assert (reported["nodes"], reported["hooks"]) == ([], [])
    assert system.kubernetes.by_name[NODE].tainted


def test_where_the_stack_is_gone_already_nothing_is_at_work(uninstall, system):
    system.claims.fail("open_instances", TerminalError("dynamodb:Query: ResourceNotFoundException"))
    assert uninstall()["left"] == []


def test_a_permission_that_is_missing_is_named(leeward, system):
    system.claims.fail("open_instances", AccessDeniedError("not allowed to dynamodb:Query"))
    result = leeward("uninstall", "--cluster", CLUSTER, "--yes")
    assert (result.code, "dynamodb:Query" in result.err) == (1, True)
    assert well_known.FINALIZER in system.kubernetes.by_name[NODE].finalizers


def test_the_table_names_what_came_off(leeward, system):
    out = leeward("uninstall", "--cluster", CLUSTER, "--yes").out
    assert out.startswith("removed\n")
    assert "finalizer leeward.dev/termination" in out
    assert "nothing of Leeward is there" in leeward("uninstall", "--cluster", CLUSTER, "--yes").out


def test_from_a_folder_it_is_only_reported(leeward, tmp_path):
    nodes = json.loads((SMALL / "nodes.json").read_text())
    nodes["items"][0]["metadata"]["finalizers"] = [well_known.FINALIZER]
    reported = leeward("uninstall", "--snapshot", a_snapshot(tmp_path, nodes=nodes), "-o", "json").json
    jsonschema.validate(reported, SCHEMA)
    assert reported["done"] is False
    assert [node["removed"] for node in reported["nodes"]] == [["finalizer leeward.dev/termination"]]


def test_it_needs_a_cluster_or_a_folder(leeward):
    assert "expected --cluster NAME" in leeward.refuses("uninstall")
