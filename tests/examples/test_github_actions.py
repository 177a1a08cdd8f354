"""examples/github-actions: a workflow by GitHub's schema, whose commands exist."""

import json
import re
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from ruamel.yaml import YAML

from infra.package.parameters import PARAMETERS
from leeward import __version__
from leeward.cli.main import build_parser

WORKFLOW = Path("examples/github-actions/deploy.yml")
SCHEMA = files("check_jsonschema").joinpath("builtin_schemas", "vendor", "github-workflows.json")


@pytest.fixture(scope="module")
def workflow():
    """YAML 1.2, in which `on` is a word."""
    return YAML(typ="safe", pure=True).load(WORKFLOW.read_text())


@pytest.fixture(scope="module")
def steps(workflow):
    return [step for step in workflow["jobs"]["deploy"]["steps"] if "run" in step]


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


def test_the_sums_are_checked_before_anything_is_uploaded(steps):
    scripts = [step["run"] for step in steps]
    assert "sha256sum --check --strict SHA256SUMS" in scripts[0]
    assert [number for number, script in enumerate(scripts) if "s3://$BUCKET" in script] == [1]


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
