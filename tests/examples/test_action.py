"""action.yml: its scripts are run on a snapshot folder, with a `gh` that notes its calls."""

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from leeward import __version__

ACTION = YAML(typ="safe", pure=True).load(Path("action.yml").read_text())
SCHEMA = files("check_jsonschema").joinpath("builtin_schemas", "vendor", "github-actions.json")
SNAPSHOT = Path("tests/cli/snapshots/small").resolve()
STEPS = ACTION["runs"]["steps"]
GH = '#!/bin/bash\necho "$*" >> "$CALLS"\ncase "$*" in *--paginate*) printf %s "$COMMENTS";; esac\n'


@pytest.fixture
def run(tmp_path):
    """Return a call that runs the action with a change of its policy file and gives (exit code, comment, calls)."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "policies").mkdir()

    def call(change=("", ""), what_if="", policies="policies/*.yaml", comments=""):
        calls = tmp_path / "calls"
        calls.write_text("")
        (tmp_path / "policies" / "a.yaml").write_text((SNAPSHOT / "policy.yaml").read_text().replace(*change))
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "CALLS": str(calls)},
            **{"POLICIES": policies, "SNAPSHOT": str(SNAPSHOT), "WHAT_IF": what_if, "COMMENTS": comments},
            **{"GH_TOKEN": "t", "REPOSITORY": "o/r", "NUMBER": "7"},
        }
        code = 0
        for step in STEPS:
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]  # as GitHub runs it
            code = code or subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode
        comment = tmp_path / "leeward" / "comment.md"
        return code, comment.read_text() if comment.exists() else "", calls.read_text()

    return call


def test_the_action_is_valid_and_no_script_has_an_expression_in_it():
    schema = json.loads(SCHEMA.read_text())
    assert list(jsonschema.validators.validator_for(schema)(schema).iter_errors(ACTION)) == []
    assert [step["name"] for step in STEPS if "${{" in step["run"]] == []


def test_a_changed_policy_is_commented_in_place_of_the_last_comment(run):
    code, comment, calls = run(("drift: false", "drift: true"), comments="42\n")
    assert code == 0
    assert re.findall(r"(?m)^### (.+)$", comment) == ["Policies", "Next disruption run with them"]
    assert re.search(r"(?m)^-.*drift: false$", comment)
    assert "4 nodes" in comment
    assert "--method PATCH repos/o/r/issues/comments/42" in calls
    assert "--method POST" not in calls


def test_a_long_answer_is_cut_at_a_line_with_how_much_is_left_out_and_where_it_is(run, tmp_path):
    (tmp_path / "bin" / "leeward").write_text('#!/bin/bash\nfor n in {1..30000}; do echo "line $n é"; done\n')
    (tmp_path / "bin" / "leeward").chmod(0o755)
    code, comment, _ = run(what_if="drift")
    assert code == 0
    assert len(comment.encode()) < 65_536
    shown = [int(number) for number in re.findall(r"(?m)^line (\d+) é$", comment)]
    (left,) = {int(number) for number in re.findall(r"Cut here: (\d+) lines more\*\* are in the summary", comment)}
    assert len(shown) // 3 + left == max(shown) + left == 30_000
    summary = (tmp_path / "summary").read_text()
    assert len(summary.encode()) < 1024 * 1024
    (_, last) = re.findall(r"Cut here: (\d+) lines more\*\* (.+)", summary)[1]
    assert last == "are printed by leeward itself on the snapshot"


@pytest.mark.long
def test_a_mistake_is_commented_and_fails_the_job(run):
    code, comment, calls = run(("kind: NodePolicy", "kind: '~~~~Policies'"))
    assert code == 2
    assert "~~~~~diff\n" in comment, "a fence that no line of the output can close"
    assert "--method POST repos/o/r/issues/7/comments" in calls


@pytest.mark.long
def test_no_value_of_an_input_is_run(run, tmp_path):
    assert run(policies="`touch${IFS}owned`")[0] == 2
    code, comment, _ = run(what_if="$(touch owned)")
    assert code == 2
    assert "### As if" in comment
    assert not (tmp_path / "owned").exists()


def test_the_example_workflow_is_valid_and_gives_inputs_that_the_action_has():
    path = Path("examples/github-actions/pull-request.yml")
    workflow = YAML(typ="safe", pure=True).load(path.read_text())
    schema = json.loads(SCHEMA.with_name("github-workflows.json").read_text())
    assert list(jsonschema.validators.validator_for(schema)(schema).iter_errors(workflow)) == []
    *steps, action = workflow["jobs"]["comment"]["steps"]
    assert set(action["with"]) <= set(ACTION["inputs"])
    assert [step for step in steps if "${{" in step.get("run", "")] == []
    assert f"/{__version__}/" in path.read_text()
