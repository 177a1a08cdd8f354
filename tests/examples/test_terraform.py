"""examples/terraform: valid HCL that gives the template the parameters that it has."""

import re
from pathlib import Path

import hcl2
import pytest

from infra.package.parameters import PARAMETERS
from leeward import __version__
from leeward.cli.main import build_parser

MAIN = Path("examples/terraform/main.tf")


def plain(value):
    """A parsed value without the quotes of HCL's texts and without the parser's own keys."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.removeprefix('"').removesuffix('"') if isinstance(value, str) else value


@pytest.fixture(scope="module")
def module():
    return plain(hcl2.loads(MAIN.read_text()))


@pytest.fixture(scope="module")
def resources(module):
    """(type, name) -> arguments."""
    return {
        (kind, name): arguments
        for block in module["resource"]
        for kind, named in block.items()
        for name, arguments in named.items()
    }


def test_the_stack_gets_parameters_that_the_template_has_and_all_that_it_needs(resources):
    given = set(resources["aws_cloudformation_stack", "leeward"]["parameters"])
    assert given <= {parameter.name for parameter in PARAMETERS}
    assert {parameter.name for parameter in PARAMETERS if parameter.default is None} <= given
    assert "Cluster1" in given


def test_the_stack_is_made_after_the_asset_and_may_make_named_roles(resources):
    stack = resources["aws_cloudformation_stack", "leeward"]
    assert stack["capabilities"] == ["CAPABILITY_NAMED_IAM"]
    assert stack["depends_on"] == ["${aws_s3_object.asset}"]
    assert resources["aws_s3_object", "asset"]["key"] == "${local.prefix}${local.asset}"
    assert stack["parameters"]["AssetPrefix"] == "${local.prefix}"


def test_every_reference_is_to_something_that_the_module_has(module, resources):
    text = MAIN.read_text()
    variables = {name for block in module["variable"] for name in block}
    assert set(re.findall(r"\bvar\.(\w+)", text)) == variables
    assert set(re.findall(r"\blocal\.(\w+)", text)) == {name for block in module["locals"] for name in block}
    named = set(re.findall(r"\b(aws_s3_object|aws_cloudformation_stack|terraform_data)\.(\w+)\b", text))
    assert named <= set(resources)
    assert len(named) == 3


def test_a_changed_policy_is_applied_by_a_command_that_exists(resources):
    policies = resources["terraform_data", "policies"]
    assert "${filesha256(var.policies)}" in policies["triggers_replace"]
    (provisioner,) = policies["provisioner"]
    command = provisioner["local-exec"]["command"].replace('\\"', "").split()
    words = [word.replace("$CLUSTER", "prod") for word in command[1:]]
    assert build_parser(words).parse_args(words).yes
    assert set(provisioner["local-exec"]["environment"]) == {part[1:] for part in command if part.startswith("$")}


def test_the_version_is_this_one(module):
    (default,) = [block["leeward_version"]["default"] for block in module["variable"] if "leeward_version" in block]
    assert default == __version__
