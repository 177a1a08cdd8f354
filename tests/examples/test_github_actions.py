"""examples/github-actions: a workflow by GitHub's schema, whose commands exist."""

import json
import os
import re
import shlex
import shutil
import subprocess
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.package.parameters import PARAMETERS
from leeward import __version__
from leeward.cli.main import build_parser
from supply_chain.package import write_sums
from supply_chain.wheel import LOCK

WORKFLOW = Path("examples/github-actions/deploy.yml")
SCHEMA = files("check_jsonschema").joinpath("builtin_schemas", "vendor", "github-workflows.json")


@pytest.fixture(scope="module")
def workflow():
    """YAML 1.2, in which `on` is a word."""
    return YAML(typ="safe", pure=True).load(WORKFLOW.read_text())


@pytest.fixture(scope="module")
def steps(workflow):
    """The steps of all jobs that run a script."""
    return [step for job in workflow["jobs"] for step in scripts(workflow, job)]


def scripts(workflow, job):
    return [step for step in workflow["jobs"][job]["steps"] if "run" in step]


def test_the_workflow_is_valid_by_githubs_schema(workflow):
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert list(validator.iter_errors(workflow)) == []
    assert list(validator.iter_errors({**workflow, "jobs": {"deploy": {"steps": []}}})) != []


def test_every_script_is_valid_and_has_its_variables(workflow, steps):
    for step in steps:
        done = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        used = set(re.findall(r"\$([A-Z_]+)", step["run"]))
        assert used == (set(step.get("env", {})) | (used & set(workflow["env"]))), step["name"]


def test_no_script_has_an_expression_in_it(steps):
    """GitHub puts its value into the script before the shell reads it: a value with a quote would be run."""
    assert [step["name"] for step in steps if "${{" in step["run"]] == []


@pytest.mark.parametrize("job", ["deploy", "policies"])
def test_a_package_that_was_replaced_with_its_sums_is_refused_before_anything_else(workflow, job, tmp_path):
    """`aws` is a function here that copies a folder."""
    package, work = tmp_path / "bucket" / __version__, tmp_path / "work"
    package.mkdir(parents=True)
    work.mkdir()
    (package / "a.whl").write_text("ours")
    write_sums(package)
    ours = sha256((package / "SHA256SUMS").read_bytes()).hexdigest()
    fetch = f'aws() {{ cp -r "$4" "$5"; }}\n{scripts(workflow, job)[0]["run"]}'

    def code(sums):
        shutil.rmtree(work / "package", ignore_errors=True)
        environment = {**os.environ, "PACKAGE_URI": str(tmp_path / "bucket"), "LEEWARD_VERSION": __version__}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", fetch]  # as GitHub runs it
        done = subprocess.run(
            command, cwd=work, env={**environment, "LEEWARD_SUMS": sums}, capture_output=True, check=False
        )
        return done.returncode

    assert code(ours) == 0
    assert code(workflow["env"]["LEEWARD_SUMS"]) != 0, "until the digest is filled in nothing is deployed"
    (package / "a.whl").write_text("theirs")
    assert code(ours) != 0
    write_sums(package)
    assert code(ours) != 0


def test_actions_are_pinned_by_commit_with_their_version_beside():
    used = re.findall(r"(?m)uses: (.+)$", WORKFLOW.read_text())
    assert len(used) == 4
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_the_job_that_can_make_roles_runs_no_package_of_an_index(workflow):
    words = "\n".join(step["run"] for step in scripts(workflow, "deploy"))
    assert not re.search(r"(?m)^\s*(pip|leeward) ", words)
    assert "DEPLOY_ROLE" not in str(workflow["jobs"]["policies"])
    assert "DEPLOY_ROLE" not in str(workflow["env"])


def test_the_command_line_is_installed_by_hashes_alone(workflow):
    (install,) = [step["run"] for step in scripts(workflow, "policies") if "pip install" in step["run"]]
    assert install.splitlines() == [
        f"pip install -r package/{LOCK}",
        "pip install --no-deps --no-index package/leeward-*.whl",
    ]


def test_the_stack_gets_parameters_that_the_template_has_and_all_that_it_needs(steps):
    (script,) = [step["run"] for step in steps if "cloudformation deploy" in step["run"]]
    words = shlex.split(script.replace("\\\n", " "))
    given = {word.partition("=")[0] for word in words[words.index("--parameter-overrides") + 1 :]}
    assert given <= {parameter.name for parameter in PARAMETERS}
    assert {parameter.name for parameter in PARAMETERS if parameter.default is None} <= given
    assert "CAPABILITY_NAMED_IAM" in words


def test_every_leeward_command_exists_with_its_options(steps):
    found = [
        shlex.split(command.replace("$CLUSTER", "prod"))
        for step in steps
        for command in re.findall(r"(?m)(?:^|[;{|] )leeward ([a-z][^\n;|]*)", step["run"])
    ]
    assert [command[0] for command in found] == ["policy", "doctor", "doctor"]
    for command in found:
        assert build_parser(command).parse_args(command)


def test_the_version_is_this_one(workflow):
    assert workflow["env"]["LEEWARD_VERSION"] == __version__
