"""The endpoints that docs/deploy.md names for functions in a VPC are those of the services that they call."""

import re
from pathlib import Path

import pytest

from infra.permissions import PERMISSIONS
from leeward.doctor import expected

DEPLOY = Path("docs/deploy.md").read_text()
PRIVATE = DEPLOY[DEPLOY.index("## Private API servers") : DEPLOY.index("## Access to the cluster")]
ROWS = dict(re.findall(r"^\| `([a-z0-9.-]+)` \| ([a-z, -]+) \|", PRIVATE, re.MULTILINE))
ENDPOINTS = {"cloudwatch": "monitoring", "pricing": "pricing.api"}  # where the endpoint has another name than in IAM
BY_GATEWAY = {"dynamodb"}
NOT_CALLED = {"iam"}  # PassRole is a check, not a call


@pytest.fixture
def in_vpc(everything):
    functions = everything.named("AWS::Lambda::Function")
    return {name.removeprefix("leeward-") for name, function in functions.items() if "VpcConfig" in function}


def test_the_functions_in_the_vpc_are_those_that_are_named(in_vpc):
    assert set(re.findall(r"`leeward-([\w-]+)`", PRIVATE)) == in_vpc


def test_doctor_asks_for_the_same_endpoints():
    assert set(expected.ENDPOINTS) == {*ROWS, *BY_GATEWAY}


def test_each_service_that_they_call_has_its_endpoint_named(in_vpc):
    called = {
        name: {p.action.split(":")[0] for p in PERMISSIONS[name] if not p.indirect} - NOT_CALLED for name in in_vpc
    }
    needed = {}
    for name, services in called.items():
        for service in services - BY_GATEWAY:
            needed.setdefault(ENDPOINTS.get(service, service), set()).add(name)
    named = {endpoint: in_vpc if names == "all" else set(names.split(", ")) for endpoint, names in ROWS.items()}
    assert named == needed
