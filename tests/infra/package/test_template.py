"""The packaged template makes, for its parameters, what the CDK app makes for the settings of the same meaning."""

import json
from pathlib import Path

import pytest

from leeward import __version__
from tests.infra.cloudformation import Refused, resolved
from tests.infra.conftest import NODES, synthesize
from tests.infra.package.settings import ASSET, NEEDED, SAME
from tests.infra.template import Template


def made(template, path=Path()):
    """Return the resources of a template, without logical ids: properties and all else, as comparable texts."""
    filled = Template(raw=template, assembly=path)
    return sorted(json.dumps(_read(filled, resource), sort_keys=True) for resource in template["Resources"].values())


def _read(filled, resource):
    properties = {**filled.filled(resource["Properties"])}
    properties.pop("Code", None)
    if isinstance(properties.get("PolicyDocument"), str):
        properties["PolicyDocument"] = json.loads(properties["PolicyDocument"])
    return [_same(properties), {key: value for key, value in resource.items() if key not in {"Properties", "Metadata"}}]


def _same(value):
    """IAM reads a list of one item as that item, and statements in any order."""
    if isinstance(value, list):
        items = sorted(map(_same, value), key=lambda item: json.dumps(item, sort_keys=True))
        return items[0] if len(items) == 1 else items
    return {key: _same(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("case", SAME)
def test_parameters_make_the_resources_that_the_settings_make(case, packaged, tmp_path):
    settings, parameters = SAME[case]
    by_cdk = made(synthesize(tmp_path, leeward=settings).raw)
    by_package = made(resolved(packaged, parameters))
    assert len(by_cdk) > 100
    assert [one for one in by_package if one not in by_cdk] == []
    assert [one for one in by_cdk if one not in by_package] == []
    assert len(by_package) == len(by_cdk)


def test_resources_other_than_those_of_a_cluster_have_the_cdk_apps_logical_ids(packaged, template):
    """So that neither table nor queue would be replaced where one way follows the other."""
    not_here = {"AWS::EKS::AccessEntry", "AWS::SSM::Parameter"}
    by_app, by_package = (
        {name for name, found in resources.items() if found["Type"] not in not_here and not name.startswith("Access")}
        for resources in (template.raw["Resources"], resolved(packaged, NEEDED)["Resources"])
    )
    assert len(by_app) > 100
    assert by_package == by_app


def test_a_cluster_that_leaves_changes_nothing_of_the_others(packaged):
    """Roles have fixed names: a role that moved to another logical id would be made before the first is deleted."""
    both = resolved(packaged, {**NEEDED, "Cluster2": "stage"})["Resources"]
    left = resolved(packaged, {**NEEDED, "Cluster1": "", "Cluster2": "stage"})["Resources"]
    assert {name for name in both if name not in left} == {name for name in both if "AccessCluster1" in name}
    assert {name for name in left if name not in both} == set()
    of_stage = [name for name in left if "AccessCluster2" in name]
    assert len(of_stage) == 4
    assert all(left[name] == both[name] for name in of_stage)


def test_no_marker_of_the_synthesis_is_left(packaged):
    from infra.package.parameters import LISTS, SCALARS

    text = json.dumps(resolved(packaged, NEEDED)["Resources"])
    assert [marker for marker in (*SCALARS, *LISTS) if marker in text] == []
    assert "Cluster2" not in text
    assert "cdk" not in text.lower()


def test_the_assets_file_is_the_templates_own_and_no_parameter(packaged):
    """`aws cloudformation deploy` keeps the values of parameters: a key of the old version would stay."""
    functions = [found for found in packaged["Resources"].values() if found["Type"] == "AWS::Lambda::Function"]
    assert len(functions) == 9
    key = {"Fn::Join": ["", [{"Ref": "AssetPrefix"}, ASSET]]}
    assert all(found["Properties"]["Code"]["S3Key"] == key for found in functions)


def test_the_version_is_an_output_and_in_every_function(packaged):
    assert packaged["Outputs"]["Version"]["Value"] == __version__
    functions = [found for found in packaged["Resources"].values() if found["Type"] == "AWS::Lambda::Function"]
    versions = {found["Properties"]["Environment"]["Variables"]["LEEWARD_VERSION"] for found in functions}
    assert versions == {__version__}


def test_no_account_needs_a_bootstrap(packaged):
    assert "BootstrapVersion" not in packaged["Parameters"]
    assert set(packaged["Rules"]) == {"SomeCluster"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Cluster1": ""}, "Set one of Cluster1 to Cluster8"),
        ({"Cluster2": "x" * 34}, "Cluster2"),
        ({"Cluster1": "-prod"}, "Cluster1"),
        ({"NodeRoleArns": ""}, "NodeRoleArns"),
        ({"NodeRoleArns": f"{NODES},arn:aws:iam::111122223333:role/*"}, "NodeRoleArns"),
        ({"AssetPrefix": "leeward"}, "AssetPrefix"),
        ({"KmsKeyArn": "alias/mine"}, "KmsKeyArn"),
        ({"LogLevel": "LOUD"}, "LogLevel"),
        ({"RunbooksUrl": "https://wiki.example.com/leeward#top"}, "RunbooksUrl"),
    ],
)
def test_a_mistake_in_a_parameter_is_refused_before_anything_is_made(change, said, packaged):
    with pytest.raises(Refused, match=said):
        resolved(packaged, {**NEEDED, **change})


def test_cloudformations_limits_hold(packaged):
    assert len(packaged["Parameters"]) <= 200
    assert len(packaged["Resources"]) <= 500
    assert max(len(found["Description"]) for found in packaged["Parameters"].values()) <= 4000
    grouped = packaged["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert [name for group in grouped for name in group["Parameters"]] == list(packaged["Parameters"])


def test_the_page_about_installing_has_every_parameter():
    from infra.package.parameters import PARAMETERS, SLOTS

    page = Path("docs/install.md").read_text()
    named = [parameter.name for parameter in PARAMETERS if parameter.name not in SLOTS[1:-1]]
    assert [name for name in named if f"`{name}`" not in page] == []
