"""Calls that the functions make in simulated worlds, against their roles: all are allowed, and what a role allows is
used or has a reason."""

from pathlib import Path

import pytest
import yaml

from infra.permissions import PERMISSIONS
from tests.infra.iam_evaluator import allows
from tests.infra.recorded import record
from tests.infra.table_requests import METHODS, table_request

ROLES = {"taint": ("leeward-taint", "leeward-surge-read"), "act": ("leeward-act", "leeward-surge")}
RARELY = {
    ("leeward-act", "get pods"): "an eviction that meets a conflict",
    ("leeward-act", "list daemonsets"): "a node with pods of more than eight DaemonSets",
    ("leeward-act", "list services"): "drain.settle: auto, where no load balancer is attached to the group",
    ("leeward-taint", "list endpointslices"): "an upgrade of nodes behind a Service of type LoadBalancer",
}
RARELY_IN_THE_TABLE = {
    ("disrupt", "dynamodb:GetItem", "maximum"): "a replacement in a group at MaxSize",
    ("disrupt", "dynamodb:PutItem", "maximum"): "a replacement in a group at MaxSize",
    ("disrupt", "dynamodb:GetItem", "reservations"): "a replacement, before which it reads what spot capacity is short",
    ("disrupt", "dynamodb:GetItem", "termination"): "a closed execution that holds the name, and the attempt after it",
    ("reconciler", "dynamodb:PutItem", "pause"): "a pause without an end, once a day, and one that has ended",
    ("reconciler", "dynamodb:BatchGetItem", "facts"): "a zonal shift, whose zone id is looked up among the subnets",
    ("drain", "dynamodb:PutItem", "termination"): "a launch that the step of another execution has overtaken",
    ("drain", "dynamodb:GetItem", "facts"): "a placement without the facts of fn sync, which reads the shifts alone",
    (
        "terminate",
        "dynamodb:GetItem",
        "facts",
    ): "a node whose policy is gone, and the hooks that it had named",
    ("interruption", "dynamodb:GetItem", "facts"): "a notice of a zonal shift",
    ("interruption", "dynamodb:BatchGetItem", "facts"): "a notice of a zonal shift",
    ("interruption", "dynamodb:PutItem", "facts"): "a notice of a zonal shift",
    ("reconciler", "dynamodb:PutItem", "upgrade"): "an upgrade whose execution was stopped, or balancing to resume",
    ("reconciler", "dynamodb:PutItem", "disruption"): "a run that died while its groups were changed",
}
STARTS = {"executions.start": "states:StartExecution", "executions.wake": "states:SendTaskSuccess"}
PORTS = frozenset(method.partition(".")[0] for method in METHODS)


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


def requests_of(recorded, function):
    """(action, key) of every request to the table that a function made."""
    methods = {one for one in recorded.ports[function] if one.partition(".")[0] in PORTS}
    return {request for method in methods for request in METHODS[method]}


@pytest.mark.parametrize("function", sorted(PERMISSIONS))
def test_every_request_to_the_table_is_allowed_by_the_functions_role(template, recorded, function):
    statements = template.statements(template.named("AWS::Lambda::Function")[f"leeward-{function}"]["Role"])
    denied = [one for one in requests_of(recorded, function) if not allows(statements, table_request(*one))]
    assert denied == []


@pytest.mark.parametrize("function", sorted(PERMISSIONS))
def test_every_key_that_a_role_allows_is_used_or_has_a_reason(recorded, function):
    allowed = {(one.action, key.partition("#")[0]) for one in PERMISSIONS[function] for key in one.keys}
    used = {(action, key.partition("#")[0]) for action, key in requests_of(recorded, function)}
    rarely = {tuple(key) for name, *key in RARELY_IN_THE_TABLE if name == function}
    assert allowed - used == rarely


@pytest.mark.parametrize("function", sorted(PERMISSIONS))
def test_a_function_that_starts_executions_may_wake_the_one_that_runs(recorded, function):
    """A cause that joins a termination ends the pause of its execution (`leeward.termination.requests.start`)."""
    needed = {action for method, action in STARTS.items() if method in recorded.ports[function]}
    allowed = {permission.action for permission in PERMISSIONS[function]}
    assert needed <= allowed
