"""A folder that lacks a file is refused where the answer would be wrong without it; an empty list is an answer."""

import pytest

from tests.cli.command import NOON, a_snapshot

COMMANDS = {
    "blockers": ("blockers",),
    "drain": ("drain", "node-a"),
    "plan": ("plan",),
    "upgrade plan": ("upgrade", "plan", "web-1"),
    "upgrade status": ("upgrade", "status", "web-1"),
    "drift": ("drift",),
    "budget": ("inspect", "budget"),
    "zones": ("inspect", "zones"),
    "place": ("inspect", "place", "web-1", "--count", "1", "--pods", "1"),
}
WITH_BUDGETS = ("blockers", "drain", "plan", "upgrade plan")


@pytest.mark.parametrize("verb", COMMANDS)
@pytest.mark.parametrize("name", ["nodes", "pods", "auto_scaling_groups"])
def test_a_folder_without_nodes_pods_or_groups_is_refused(leeward, tmp_path, verb, name):
    folder = a_snapshot(tmp_path, **{name: None})
    reported = leeward.refuses(*COMMANDS[verb], "--snapshot", folder, "--now", NOON)
    assert f"found no {name.replace('_', '-')}.json (" in reported
    assert "expected the file, an empty list at least" in reported


@pytest.mark.parametrize("verb", WITH_BUDGETS)
@pytest.mark.parametrize("name", ["pdbs", "daemonsets"])
def test_where_budgets_decide_a_folder_without_them_is_refused(leeward, tmp_path, verb, name):
    folder = a_snapshot(tmp_path, **{name: None})
    reported = leeward.refuses(*COMMANDS[verb], "--snapshot", folder, "--now", NOON)
    assert f"{folder}: {verb}: found no {name}.json (kubectl get " in reported


def test_an_empty_folder_names_every_file_with_the_command_that_makes_it(leeward, tmp_path):
    reported = leeward.refuses("plan", "--snapshot", tmp_path)
    assert reported.count(".json (kubectl get ") == 4
    assert "auto-scaling-groups.json (aws autoscaling describe-auto-scaling-groups" in reported


@pytest.mark.parametrize("verb", WITH_BUDGETS)
def test_an_empty_list_is_an_answer(leeward, tmp_path, verb):
    folder = a_snapshot(tmp_path, pdbs={"items": []}, daemonsets={"items": []})
    assert leeward(*COMMANDS[verb], "--snapshot", folder, "--now", NOON).code in {0, 1}


def test_a_template_needs_the_groups_alone(leeward, tmp_path):
    folder = a_snapshot(tmp_path, nodes=None, pods=None, pdbs=None, daemonsets=None)
    assert "found no nodes.json" not in leeward("inspect", "template", "web-1", "--snapshot", folder).err
