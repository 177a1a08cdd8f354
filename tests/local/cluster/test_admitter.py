"""Refusals that a simulation plants, and the part of CEL that policies may use."""

import pytest

from local.cluster.errors import ApiError, internal_error
from local.cluster.validating.admitter import PlantedRefusal
from local.cluster.validating.cel import CelError, CelSyntaxError, compiled

FAILED = 'failed calling webhook "engine.policies.example": failed to call webhook'


def test_a_planted_refusal_fails_the_eviction_of_its_pod_and_of_no_other(lab):
    first, second, _ = lab.deployed()
    planted = PlantedRefusal(error=internal_error(FAILED), resource="pods/eviction", name=first)
    for _ in range(2):
        lab.cluster.admitter.plant(planted)
    with pytest.raises(ApiError) as refused:
        lab.cluster.evict(first)
    assert (refused.value.code, refused.value.message) == (500, f"Internal error occurred: {FAILED}")
    lab.cluster.evict(second)
    lab.cluster.delete("pods", first)  # an eviction's refusal says nothing about a deletion
    lab.cluster.admitter.uproot(planted)
    lab.cluster.evict(first)
    assert lab.cluster.admitter.idle


def test_a_planted_refusal_fails_the_events_of_its_namespace_and_of_no_other(lab):
    lab.create("namespaces", {"metadata": {"name": "shop"}})
    lab.cluster.admitter.plant(PlantedRefusal(error=internal_error(FAILED), resource="events", namespace="shop"))
    event = {"metadata": {"name": "note"}, "involvedObject": {"kind": "Pod", "name": "web"}, "message": "m"}
    there = {**event, "involvedObject": {**event["involvedObject"], "namespace": "shop"}}
    with pytest.raises(ApiError):
        lab.create("events", there, "shop")
    assert lab.create("events", event, "default")["message"] == "m"


VARIABLES = {
    "object": {"metadata": {"name": "web-1", "labels": {"app": "web"}}, "spec": {"replicas": 3, "taints": []}},
    "oldObject": None,
    "request": {"operation": "CREATE", "namespace": "shop", "userInfo": {"username": "alice"}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("false", False),
        ("object.spec.replicas >= 3 && request.namespace != 'kube-system'", True),
        ("object.metadata.labels['app'] in ['web', \"api\"]", True),
        ("!(request.operation == 'DELETE') || oldObject != null", True),
        ("oldObject == null", True),
        ("has(object.metadata.annotations)", False),
        ("object.metadata.name.startsWith('web-') && object.metadata.name.matches('[0-9]$')", True),
        ("size(object.spec.taints) == 0 && object.metadata.name.size() == 5", True),
        (r"object.metadata.name.matches('^web\\-\\d$')", True),
        (r"""'it\'s' == "it's" && 1.5 < 2""", True),
        ("object.spec.missing == 1 || true", True),
        ("object.spec.missing == 1 && false", False),
    ],
)
def test_an_expression_is_evaluated_as_cel_says(text, value):
    assert compiled(text)(VARIABLES) is value


def test_an_absent_field_is_an_error():
    with pytest.raises(CelError, match="no such key: annotations"):
        compiled("object.metadata.annotations.team == 'web'")(VARIABLES)


@pytest.mark.parametrize("text", ["1 +", "a ? b : c", "object.items.all(i, true)", "size(", "'open", r"'\d'", ""])
def test_an_expression_outside_the_supported_part_is_a_syntax_error(text):
    with pytest.raises(CelSyntaxError):
        compiled(text)
