"""The types of every kind: known, decoded, and published as OpenAPI."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.cluster import openapi, schemas
from local.cluster.decoding import Decoder, WrongTypeError
from local.cluster.resources import BY_KIND, BY_PLURAL
from local.cluster.schemas import model_of


def test_every_kind_has_a_model():
    assert [kind for kind, resource in BY_KIND.items() if model_of(resource) is None] == []


@pytest.fixture
def restless_threads():
    """Threads that are switched inside C code too: a collection of garbage runs Python code, as some test tools do."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(_run_some_code)
    gc.set_threshold(50)
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(_run_some_code)


def _run_some_code(_phase, _info):
    for _ in range(300):
        pass


@pytest.mark.usefixtures("restless_threads")
def test_requests_side_by_side_read_the_types_of_different_kinds():
    modules = ["core_v1", "apps_v1", "batch_v1", "rbac_v1", "policy_v1", "storage_v1"] * 4
    schemas._models.cache_clear()
    with ThreadPoolExecutor(len(modules)) as threads:
        assert all(threads.map(schemas._models, modules))


def test_unknown_fields_are_named_by_their_path():
    decoder = Decoder(BY_PLURAL["pods"])
    containers = [{"name": "main", "ports": [{"containerPort": 80, "colour": "red"}]}]
    kept = decoder.decoded({"metadata": {"name": "web"}, "spec": {"containers": containers, "shape": "disruption"}})
    assert decoder.unknown == ["spec.containers[0].ports[0].colour", "spec.shape"]
    assert kept["spec"] == {"containers": [{"name": "main", "ports": [{"containerPort": 80}]}]}


@pytest.mark.parametrize(
    ("resource", "spec", "words"),
    [
        (
            "nodes",
            {"unschedulable": "yes"},
            "unmarshal string into Go struct field NodeSpec.spec.unschedulable of type bool",
        ),
        ("nodes", {"taints": {}}, "unmarshal object into Go struct field NodeSpec.spec.taints"),
        (
            "deployments",
            {"replicas": True},
            "unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ("poddisruptionbudgets", {"minAvailable": 1.5}, "unmarshal number"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_in_the_words_of_go(resource, spec, words):
    with pytest.raises(WrongTypeError, match=words):
        Decoder(BY_PLURAL[resource]).decoded({"spec": spec})


def test_a_number_or_a_percentage_is_an_int_or_string():
    for value in (1, "50%", None):
        assert Decoder(BY_PLURAL["poddisruptionbudgets"]).decoded({"spec": {"minAvailable": value}})


def test_every_reference_of_a_document_leads_somewhere():
    def references(value):
        if isinstance(value, dict):
            yield from (item for key, item in value.items() if key == "$ref")
            value = list(value.values())
        for item in value if isinstance(value, list) else ():
            yield from references(item)

    for path in openapi.index()["paths"]:
        _, *group, version = path.split("/")
        schemas = openapi.document("".join(group), version)["components"]["schemas"]
        missing = {name for name in references(schemas) if name.rpartition("/")[2] not in schemas}
        assert missing == set()
