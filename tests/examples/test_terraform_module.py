"""terraform/: a module whose variables are the template's parameters."""

import json
import re
from pathlib import Path

import hcl2
import pytest

from infra.package.parameters import PARAMETERS
from tests.examples.test_terraform import plain

OWN = {"template_url", "stack_name", "tags"}
SWITCH = ("true", "false")


@pytest.fixture(scope="module")
def parsed():
    return [plain(hcl2.loads(path.read_text())) for path in sorted(Path("terraform").glob("*.tf"))]


@pytest.fixture(scope="module")
def variables(parsed):
    return {name: item for file in parsed for block in file["variable"] for name, item in block.items()}


@pytest.fixture(scope="module")
def stack(parsed):
    (resource,) = [block for file in parsed for block in file.get("resource", [])]
    return resource["aws_cloudformation_stack"]["leeward"]


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def expected(parameter):
    """Return (type, default, description) of a parameter's variable."""
    switch = parameter.allowed == SWITCH
    kind = "bool" if switch else "list(string)" if parameter.many else "string"
    default = parameter.default
    if default is not None and (switch or parameter.many):
        default = default == "true" if switch else []
    return kind, default, parameter.description


def test_every_parameter_is_a_variable_with_its_type_default_and_description(variables):
    assert set(variables) - OWN == {snake(parameter.name) for parameter in PARAMETERS}
    for parameter in PARAMETERS:
        variable = variables[snake(parameter.name)]
        kind, default, description = expected(parameter)
        assert variable["type"].strip("${}") == kind, parameter.name
        assert ("default" in variable, variable.get("default")) == (default is not None, default), parameter.name
        assert variable["description"] == description


def test_a_variable_is_checked_by_the_pattern_or_the_values_of_its_parameter(variables):
    for parameter in PARAMETERS:
        (check,) = variables[snake(parameter.name)].get("validation", [{"condition": ""}])
        pattern = parameter.definition().get("AllowedPattern")
        values = list(parameter.allowed) if parameter.allowed != SWITCH else []
        assert pattern is None or json.dumps(pattern) in check["condition"], parameter.name
        assert re.findall(r'"([A-Z]+)"', check["condition"] if values else "") == values, parameter.name
        assert bool(check["condition"]) == bool(pattern or values)


def test_the_stack_gets_every_parameter_from_its_variable(stack):
    assert set(stack["parameters"]) == {parameter.name for parameter in PARAMETERS}
    for parameter in PARAMETERS:
        assert re.findall(r"\bvar\.(\w+)", stack["parameters"][parameter.name]) == [snake(parameter.name)]


def test_the_stack_is_of_the_released_template_and_the_runner_needs_no_command(stack):
    assert stack["template_url"] == "${var.template_url}"
    assert stack["capabilities"] == ["CAPABILITY_NAMED_IAM"]
    text = "".join(path.read_text() for path in Path("terraform").glob("*.tf"))
    assert not re.search(r"provisioner|local-exec|data \"external\"|\bfile\(", text)
