"""Models of AWS' APIs that the asset brings: botocore's own for every operation that a function calls."""

import json
import re
from pathlib import Path

import pytest
from botocore import xform_name
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.regions import EndpointResolver
from botocore.utils import ArgumentGenerator

from infra.api_models import ADAPTERS, ENDPOINTS, PAGINATORS, SERVICE, botocore_data, cut_model, names_in
from infra.asset import MODELS, build_asset
from infra.permissions import PERMISSIONS
from leeward.adapters.aws.clients import QuickLoader
from tests.infra.conftest import ROOT
from tests.infra.sdk_names import operation_of, services_of

NEW_REGION = "eu-west-9"  # that neither file lists
OF_THE_SDK = frozenset({"cloudwatch"})  # its model speaks a protocol that the oldest SDK does not know
CALL = re.compile(r'lients\.get\("([a-z0-9-]+)"[^()]*\)\s*\.([a-z_]+)\(')
PAGED = re.compile(r'pages\(\s*self\._clients\.get\("([a-z0-9-]+)"[^()]*\), "([a-z_]+)"')


@pytest.fixture(scope="module")
def models():
    return build_asset(ROOT).folder / MODELS


@pytest.fixture(scope="module")
def services(models):
    """(botocore's model, the asset's) of each service that the asset brings."""
    found = {}
    for path in models.rglob(SERVICE):
        service, version, _ = path.relative_to(models).parts
        whole = Loader().load_service_model(service, "service-2", version)
        found[service] = (ServiceModel(whole, service), ServiceModel(json.loads(path.read_text()), service))
    return found


def without_text(part):
    if isinstance(part, dict):
        kept = ((key, value) for key, value in part.items() if not (key == "documentation" and isinstance(value, str)))
        return {key: without_text(value) for key, value in kept}
    return [without_text(inner) for inner in part] if isinstance(part, list) else part


def test_every_operation_that_a_function_may_call_is_in_its_model(services):
    actions = {permission.action for table in PERMISSIONS.values() for permission in table if not permission.indirect}
    left = {action for action in actions if not OF_THE_SDK.intersection(services_of(action))}
    known = {(name, operation) for name, (_, cut) in services.items() for operation in cut.operation_names}
    assert {a for a in left if not known.intersection((name, operation_of(a)) for name in services_of(a))} == set()


def test_every_operation_that_the_adapters_call_on_a_client_is_in_its_model(services):
    left_out = {"capture", "doctor", "folder"}
    sources = [path for path in (ROOT / ADAPTERS).rglob("*.py") if not left_out & set(path.parts)]
    text = "\n".join(path.read_text() for path in sources)
    called = {*CALL.findall(text), *PAGED.findall(text)} - {("sts", "meta")}
    known = {(name, xform_name(one)) for name, (_, cut) in services.items() for one in cut.operation_names}
    assert len(called) > 15
    assert {(service, name) for service, name in called - known if service not in OF_THE_SDK} == set()


def test_requests_answers_and_errors_have_botocore_s_shapes(services):
    for whole, cut in services.values():
        assert cut.metadata == whole.metadata
        for name in cut.operation_names:
            theirs, ours = whole.operation_model(name), cut.operation_model(name)
            assert ours.http == theirs.http
            assert ours._operation_model == without_text(theirs._operation_model)
            assert [shape.name for shape in ours.error_shapes] == [shape.name for shape in theirs.error_shapes]
            for shape in (ours.input_shape, ours.output_shape):
                if shape is not None:
                    ArgumentGenerator().generate_skeleton(shape)  # every shape that it reaches is there
        for shape in cut.shape_names:
            assert cut._shape_resolver._shape_map[shape] == without_text(whole._shape_resolver._shape_map[shape])


def test_operations_are_paged_as_botocore_pages_them(models, services):
    for service, (whole, cut) in services.items():
        theirs = Loader().load_service_model(service, "paginators-1")["pagination"]
        ours = json.loads((models / service / whole.api_version / PAGINATORS).read_text())["pagination"]
        rules = {name: theirs.get(name) for name in cut.operation_names if name in theirs}
        rules = {name: rule for name, rule in rules.items() if name in ours or "sdk-extras" not in str(rule)}
        assert ours == {name: rules[name] for name in ours}
        assert set(ours) == set(rules)


def test_endpoints_are_those_of_botocore_in_every_region(models, services):
    cut, whole = (
        EndpointResolver(json.loads((folder / ENDPOINTS).read_text())) for folder in (models, botocore_data())
    )
    assert cut.get_available_partitions() == whole.get_available_partitions()
    for service, (_, model) in services.items():
        for partition in whole.get_available_partitions():
            regions = whole.get_available_endpoints(model.endpoint_prefix, partition)
            assert cut.get_available_endpoints(model.endpoint_prefix, partition) == regions, service
            for region in (*regions, NEW_REGION):
                asked = model.endpoint_prefix, region
                assert cut.construct_endpoint(*asked) == whole.construct_endpoint(*asked)


def test_what_the_asset_lacks_comes_from_the_sdk(models):
    loader = QuickLoader(extra_search_paths=[str(models)])
    assert "GetObject" in loader.load_service_model("s3", "service-2")["operations"]
    assert "RunInstances" not in loader.load_service_model("ec2", "service-2")["operations"]
    assert loader.load_service_model("eks", "waiters-2")
    assert set(Loader().list_available_services("service-2")) <= set(loader.list_available_services("service-2"))


def test_the_models_are_a_small_part_of_botocore_s(models):
    assert sum(path.stat().st_size for path in models.rglob("*.json")) < 500_000


def test_a_shape_is_kept_where_an_operation_reaches_it_and_a_member_called_documentation_stays():
    text = {"shape": "Text", "documentation": "Some text."}
    model = {
        "metadata": {},
        "operations": {
            "GetThing": {"input": {"shape": "Ask"}, "errors": [{"shape": "Gone"}], "documentation": "Gets it."},
            "DropThing": {"input": {"shape": "Drop"}},
        },
        "shapes": {
            "Ask": {"type": "structure", "members": {"documentation": text, "List": {"shape": "Texts"}}},
            "Texts": {"type": "list", "member": {"shape": "Text"}},
            "Text": {"type": "string"},
            "Gone": {"type": "structure", "members": {}, "exception": True},
            "Drop": {"type": "structure", "members": {}},
        },
    }
    cut = cut_model(model, frozenset({"get_thing"}))
    assert cut["operations"] == {"GetThing": {"input": {"shape": "Ask"}, "errors": [{"shape": "Gone"}]}}
    assert set(cut["shapes"]) == {"Ask", "Texts", "Text", "Gone"}
    assert cut["shapes"]["Ask"]["members"] == {"documentation": {"shape": "Text"}, "List": {"shape": "Texts"}}


def test_names_are_attributes_and_texts_of_what_the_asset_has(tmp_path):
    for name, text in {"a.py": 'client.get_thing("paged")', "cli/b.py": "client.drop_thing()"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Path(tmp_path / name).write_text(text)
    assert names_in(tmp_path, ("cli",)) == {"get_thing", "paged"}
