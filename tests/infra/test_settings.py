"""What a deployment may be reported, and the one sentence for whatever is wrong."""

import json

import pytest

from infra.settings import read_settings
from leeward.errors import InvalidInputError

POLICY = """
apiVersion: leeward.dev/v1
kind: NodePolicy
metadata: {name: web}
spec: {selector: {groups: ["web-*"]}}
"""
NODES = "arn:aws:iam::111122223333:role/nodes"
KEY = "arn:aws:kms:eu-west-1:111122223333:key/mrk-0a1b2c3d4e5f60718293a4b5c6d7e8f9"
SUBNETS = {"subnetIds": ["subnet-0a1b2c3d"], "securityGroupIds": ["sg-0a1b2c3d"]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "web.yaml").write_text(POLICY)
    return tmp_path


def cluster(**changes):
    return {"name": "demo", "policies": ["policies/*.yaml"], **changes}


def read(folder, leeward=None, settings=None, **environment):
    if isinstance(leeward, dict):
        leeward = {"nodeRoles": [NODES], **leeward}
    return read_settings({"leeward": leeward, "settings": settings}.get, folder, environment)


def complaint(folder, leeward=None, settings=None):
    with pytest.raises(InvalidInputError) as raised:
        read(folder, leeward, settings)
    return str(raised.value)


def test_a_cluster_without_policies_has_no_parameters(folder):
    """`leeward policy apply` writes them."""
    settings = read(folder, {"clusters": [{"name": "demo"}]})
    assert settings.clusters[0].documents == ()


def test_a_cluster_and_its_policies_are_enough(folder):
    settings = read(folder, {"clusters": [cluster()]})
    (demo,) = settings.clusters
    assert demo.name == "demo"
    assert [document.name for document in demo.documents] == ["01-web"]
    assert json.loads(demo.documents[0].value)["spec"]["selector"] == {"groups": ["web-*"]}
    assert (settings.account, settings.region, settings.vpc, settings.access_entries) == (None, None, None, True)


def test_the_context_may_be_text_from_the_command_line(folder):
    assert read(folder, json.dumps({"clusters": [cluster()], "nodeRoles": [NODES]})).clusters[0].name == "demo"


@pytest.mark.parametrize("name", ["settings.json", "settings.yaml"])
def test_a_settings_file_wins_over_the_context_and_policies_lie_beside_it(folder, tmp_path, name):
    content = {"clusters": [cluster(name="from-file")], "nodeRoles": [NODES]}
    (folder / name).write_text(json.dumps(content))
    settings = read_settings({"leeward": {}, "settings": str(folder / name)}.get, tmp_path / "elsewhere", {})
    assert settings.clusters[0].name == "from-file"


def test_account_and_region_come_from_the_clusters_before_the_credentials(folder):
    ours = {"CDK_DEFAULT_ACCOUNT": "999900001111", "CDK_DEFAULT_REGION": "eu-west-1"}
    reported = read(folder, {"clusters": [cluster(account="111122223333")]}, **ours)
    assert (reported.account, reported.region) == ("111122223333", "eu-west-1")


def test_a_default_region_without_credentials_ties_the_stack_to_nothing(folder):
    assert read(folder, {"clusters": [cluster()]}, CDK_DEFAULT_REGION="us-east-1").region is None


def test_zero_reserves_nothing_and_an_absent_key_the_default(folder):
    settings = read(folder, {"clusters": [cluster()], "concurrency": {"drain": 0}})
    assert (settings.interruption_concurrency, settings.drain_concurrency) == (10, None)


@pytest.mark.parametrize(
    ("leeward", "said"),
    [
        (None, "context: leeward: found nothing, expected {"),
        ("{", "context: leeward: found '{', expected JSON"),
        ([], "context: leeward: found [], expected a mapping"),
        ({}, "context: leeward.clusters: found null, expected a list of at least 1"),
        ({"clusters": []}, "context: leeward.clusters: found [], expected a list of at least 1"),
        ({"cluster": []}, "context: leeward: found key 'cluster', expected only clusters, senders"),
        ({"clusters": [cluster(polices=[])]}, "leeward.clusters[0]: found key 'polices', expected only name, policies"),
        ({"clusters": [cluster(name="a b")]}, "leeward.clusters[0].name: found a b, expected an EKS cluster's name"),
        ({"clusters": [cluster(name=7)]}, "leeward.clusters[0].name: found 7, expected an EKS cluster's name"),
        ({"clusters": [cluster(), cluster()]}, "leeward.clusters[1].name: found demo, expected each cluster once"),
        ({"clusters": [cluster(name=f"c{n}") for n in range(9)]}, "clusters: found 9 items, expected at most 8"),
        (
            {"clusters": [cluster(name="c" * 90 + str(n)) for n in range(5)]},
            "names of 455 characters, expected at most",
        ),
        ({"clusters": [cluster(policies="x")]}, "leeward.clusters[0].policies: found x, expected a list of at least"),
        ({"clusters": [cluster(policies=[])]}, "leeward.clusters[0].policies: found [], expected a list of at least"),
        ({"clusters": [cluster(account=111122223333)]}, "found 111122223333, expected twelve digits, as text"),
        ({"clusters": [cluster(region="Ireland")]}, ".region: found Ireland, expected a region such as eu-west-1"),
        ({"clusters": [cluster(vpc={"subnetIds": []})]}, ".vpc.subnetIds: found [], expected a list of at least 1"),
        ({"clusters": [cluster(vpc={**SUBNETS, "subnetIds": ["x"]})]}, ".vpc.subnetIds[0]: found x, expected a sub"),
        ({"clusters": [cluster()], "accessEntries": "no"}, "leeward.accessEntries: found no, expected true or false"),
        ({"clusters": [cluster()], "alarmTopic": "x"}, "leeward.alarmTopic: found x, expected the ARN of an SNS topic"),
        ({"clusters": [cluster()], "senders": {"roles": ["x"]}}, "leeward.senders.roles[0]: found x, expected the ARN"),
        (
            {"clusters": [cluster()], "concurrency": {"drain": "x"}},
            "drain: found x, expected a whole number of at least",
        ),
        (
            {"clusters": [cluster()], "concurrency": {"interruption": 1}},
            "found 1, expected a whole number of at least 2",
        ),
        (
            {"clusters": [cluster()], "nodeRoles": None},
            "leeward.nodeRoles: found nothing, expected the ARNs of the roles",
        ),
        ({"clusters": [cluster()], "nodeRoles": []}, "leeward.nodeRoles: found [], expected a list of at least 1"),
        (
            {"clusters": [cluster()], "nodeRoles": ["*"]},
            "leeward.nodeRoles[0]: found *, expected the ARN of one IAM role",
        ),
        ({"clusters": [cluster()], "nodeRoles": [f"{NODES}-*"]}, "expected the ARN of one IAM role, without *"),
        ({"clusters": [cluster()], "logLevel": "LOUD"}, "leeward.logLevel: found LOUD, expected DEBUG | INFO"),
        (
            {"clusters": [cluster()], "logSampling": 101},
            "found 101, expected a whole number of at least 1 and at most 100",
        ),
        (
            {"clusters": [cluster()], "kmsKey": "alias/ours"},
            "leeward.kmsKey: found alias/ours, expected the ARN of a KMS",
        ),
        (
            {"clusters": [cluster(region="us-east-1")], "kmsKey": KEY},
            "leeward.kmsKey: found eu-west-1, expected a key in us-east-1, the deployment's Region",
        ),
    ],
)
def test_what_is_wrong_is_named_with_path_found_and_expected(folder, leeward, said):
    assert said in complaint(folder, leeward)


@pytest.mark.parametrize("key", ["account", "region", "vpc"])
def test_one_deployment_serves_one_account_region_and_vpc(folder, key):
    values = {"account": ("111122223333", "444455556666"), "region": ("eu-west-1", "us-east-1"), "vpc": (SUBNETS, None)}
    clusters = [cluster(name=name, **{key: value}) for name, value in zip("ab", values[key], strict=True)]
    assert f"the same {key} for all clusters of one deployment" in complaint(folder, {"clusters": clusters})


def test_a_policy_pattern_that_names_nothing_is_refused(folder):
    assert "nope.yaml" in complaint(folder, {"clusters": [cluster(policies=["nope.yaml"])]})


def test_a_wrong_policy_is_refused_by_file_and_path(folder):
    (folder / "policies" / "web.yaml").write_text(POLICY.replace("groups", "grups"))
    said = complaint(folder, {"clusters": [cluster()]})
    assert "web.yaml" in said
    assert "grups" in said


def test_a_file_without_any_document_is_refused(folder):
    (folder / "policies" / "web.yaml").write_text("# nothing yet\n")
    assert "expected at least one policy document" in complaint(folder, {"clusters": [cluster()]})


def test_a_document_over_eight_kilobytes_is_refused(folder):
    groups = [f"{'g' * 80}-{number}" for number in range(110)]
    (folder / "policies" / "web.yaml").write_text(POLICY.replace('["web-*"]', json.dumps(groups)))
    assert "8192" in complaint(folder, {"clusters": [cluster()]}).replace(",", "")


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), ("{", "found no valid JSON or YAML"), ("- 1", "found [1], expected")],
)
def test_a_settings_file_that_is_none_is_refused_by_its_name(folder, content, said):
    if content is not None:
        (folder / "settings.json").write_text(content if content != "- 1" else "[1]")
    complained = complaint(folder, settings="settings.json")
    assert complained.startswith("settings.json: ")
    assert said in complained
