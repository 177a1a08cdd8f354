"""Calls that the functions make in simulated worlds, against their roles: all are allowed, and what a role allows is
used or has a reason."""

from pathlib import Path

import pytest
import yaml

from tests.infra.recorded import record

ROLES = {"taint": ("leeward-taint", "leeward-surge-read"), "act": ("leeward-act", "leeward-surge")}
RARELY = {
    ("leeward-act", "get pods"): "an eviction that meets a conflict",
    ("leeward-act", "list daemonsets"): "a node with pods of more than eight DaemonSets",
    ("leeward-taint", "list endpointslices"): "an upgrade of nodes behind a Service of type LoadBalancer",
}


@pytest.fixture(scope="module")
def recorded():
    return record()


@pytest.fixture(scope="module")
def rules():
    """ClusterRole -> what it allows, `list nodes`. No resource of ours exists in two API groups."""
    documents = [one for path in Path("manifests").glob("*.yaml") for one in yaml.safe_load_all(path.read_text())]
    return {
        document["metadata"]["name"]: {
            f"{verb} {resource}"
            for rule in document["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        for document in documents
        if document["kind"] == "ClusterRole"
    }


def accesses(template):
    functions = template.named("AWS::Lambda::Function")
    return {
        name.removeprefix("leeward-"): function["Environment"]["Variables"]["KUBERNETES_ACCESS"]
        for name, function in functions.items()
    }


def test_every_kubernetes_request_of_a_function_is_allowed_by_its_role(template, recorded, rules):
    access = accesses(template)
    beyond = {
        function: requests - set().union(*(rules[role] for role in ROLES.get(access[function], ())))
        for function, requests in recorded.kubernetes.items()
    }
    assert {function: requests for function, requests in beyond.items() if requests} == {}


def test_every_rule_of_a_role_is_used_by_one_of_its_functions_or_has_a_reason(template, recorded, rules):
    access = accesses(template)
    unused = set()
    for name, roles in ROLES.items():
        used = set().union(*(recorded.kubernetes[one] for one in access if access[one] == name))
        unused |= {(role, rule) for role in roles for rule in rules[role] - used}
    assert unused == set(RARELY)


def test_every_function_with_access_to_clusters_calls_them_and_no_other_does(template, recorded):
    assert set(recorded.kubernetes) == {name for name, access in accesses(template).items() if access != "none"}
