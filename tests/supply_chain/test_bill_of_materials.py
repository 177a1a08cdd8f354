"""Bills of materials: valid CycloneDX, complete, and the same for the same content."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infra.asset import build_asset
from supply_chain.bill_of_materials import InvalidBillError, asset_bill, check, development_bill
from supply_chain.licences import npm_packages
from supply_chain.locks import ASSET, BOOTSTRAP, DEVELOPMENT, read_lock
from tests.infra.conftest import ROOT

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def asset():
    return json.loads(asset_bill(ROOT, NOW))


@pytest.fixture(scope="module")
def development():
    return json.loads(development_bill(ROOT, NOW))


def test_both_are_valid_by_cyclonedx_s_own_schema(asset, development):
    for bill in (asset, development):
        assert bill["specVersion"] == "1.6"
        check(json.dumps(bill))


def test_a_document_that_the_schema_refuses_is_refused(asset):
    with pytest.raises(InvalidBillError):
        check(json.dumps({**asset, "components": [{"name": "no type"}]}))
    with pytest.raises(InvalidBillError):
        check(json.dumps({**asset, "unheard": "of"}))


def test_the_asset_s_bill_names_each_package_in_it_with_its_hashes(asset):
    folder = build_asset(ROOT).folder
    inside = {path.name.removesuffix(".dist-info").replace("_", "-") for path in folder.glob("*.dist-info")}
    assert {f"{part['name']}-{part['version']}" for part in asset["components"]} == inside
    for pin in read_lock(ROOT / ASSET):
        (part,) = [part for part in asset["components"] if part["name"] == pin.name]
        (files,) = part["externalReferences"]
        assert {each["content"] for each in files["hashes"]} == set(pin.hashes)


def test_it_belongs_to_one_asset(asset):
    (digest,) = asset["metadata"]["component"]["properties"]
    assert digest == {"name": "leeward:asset:digest", "value": build_asset(ROOT).digest}


def test_the_development_bill_names_every_locked_package(development):
    pins = (*read_lock(ROOT / DEVELOPMENT), *read_lock(ROOT / BOOTSTRAP))
    urls = {part["purl"] for part in development["components"]}
    assert {f"pkg:pypi/{pin.name}@{pin.version}" for pin in pins} <= urls
    assert len(urls) == len({(pin.name, pin.version) for pin in pins}) + len(npm_packages(ROOT))


def test_every_component_has_a_licence_and_is_reached_from_the_root(asset, development):
    for bill in (asset, development):
        assert all(part["licenses"] for part in bill["components"])
        edges = {edge["ref"]: edge.get("dependsOn", []) for edge in bill["dependencies"]}
        reached, todo = set(), [bill["metadata"]["component"]["bom-ref"]]
        while todo:
            reference = todo.pop()
            if reference not in reached:
                reached.add(reference)
                todo += edges[reference]
        assert {part["bom-ref"] for part in bill["components"]} <= reached


def test_the_same_content_makes_the_same_document_but_for_its_time(asset):
    later = json.loads(asset_bill(ROOT, NOW.replace(year=2027)))
    assert later["serialNumber"] == asset["serialNumber"]
    later["metadata"]["timestamp"] = asset["metadata"]["timestamp"]
    assert later == asset


def test_it_names_no_host_and_no_path_of_this_machine(development):
    text = json.dumps({**development, "$schema": "", "metadata": {**development["metadata"], "tools": None}})
    assert str(ROOT) not in text
    assert str(Path.home()) not in text
    assert "://" not in text
