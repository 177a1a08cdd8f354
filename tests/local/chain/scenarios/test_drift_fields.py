"""Drift on a deployed stack: which fields count, what is written on the node, and what is only reported.

The tests are stages, in their order: run the file as a whole."""

from base64 import b64encode

import pytest

from tests.local.chain.scenarios.disruption_stage import deployed, policy

pytestmark = [pytest.mark.local, pytest.mark.long]

DRIFT = {"consolidationPolicy": "Never"}
ELSEWHERE = {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["us-east-1c"]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """Three nodes, one in each zone."""
    with deployed(tmp_path_factory.mktemp("drift")) as found:
        found.build("shape", 3)
        found.settle()
        yield found


def drift_of(stage):
    """Node -> (fields, remedy) of the drifted nodes of group shape, as `leeward drift` reports them."""
    found = stage.leeward("drift", "--group", "shape").document["nodes"]
    return {one["node"]: ([why["field"] for why in one["reasons"]], one["remedy"]) for one in found if one["drifted"]}


def noted(stage):
    """Node -> the fields in which its annotation says that it has drifted."""
    crew, key = stage.crews["shape"], "leeward.dev/drift-reasons"
    notes = {crew.node_name(one): stage.annotations(one).get(key) for one in crew.instances}
    return {node: said for node, said in notes.items() if said}


def test_another_expiry_budget_saving_or_cooldown_of_the_policy_is_no_drift(stage):
    behaviour = {"expireAfter": "720h", "budgets": [{"nodes": 3}], "minimumSavings": {"percent": 50}, "cooldown": "9m"}
    for rules in (DRIFT, {**DRIFT, **behaviour}):
        stage.apply([policy("shape", **rules)])
        assert (stage.decide(), drift_of(stage), noted(stage)) == ([], {}, {})


@pytest.mark.parametrize(
    ("asked", "field", "count"),
    [
        ({"node": {"labels": {"tier": "front"}}}, "labels", 3),
        ({"node": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}}, "taints", 3),
        ({"requirements": [ELSEWHERE]}, "requirements", 1),
    ],
    ids=["a label", "a taint", "a requirement"],
)
def test_nodes_that_lack_what_no_launch_would_bring_are_annotated_and_not_replaced(stage, asked, field, count):
    """Only the node in the zone that the requirement excludes is incompatible with it."""
    launches = stage.launches()
    stage.apply([policy("shape", **DRIFT, **asked)])
    assert stage.decide() == []
    assert list(drift_of(stage).values()) == [([field], "upgrade")] * count
    assert noted(stage) == dict.fromkeys(drift_of(stage), field)
    assert stage.launches() == launches
    assert stage.states(stage.crews["shape"].instances) == {"running"}


def test_each_field_of_a_new_launch_template_version_is_drift_and_a_replacement_is_its_remedy(stage):
    """Fields that an instance shows, and user data and disks, whose hashes the planner has put on the nodes."""
    stage.apply([policy("shape", **DRIFT)])
    assert stage.decide() == []
    vpc, ec2 = stage.network.vpc, stage.stack.client("ec2")
    guarded = ec2.create_security_group(GroupName="guarded", Description="other nodes", VpcId=vpc)["GroupId"]
    changed = {
        "InstanceType": "m5.xlarge",
        "UserData": b64encode(f"cluster={stage.stack.cluster} other".encode()).decode(),
        "BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 80}}],
        "SecurityGroupIds": [guarded],
        "Monitoring": {"Enabled": True},
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "cost-center", "Value": "7"}]}],
    }
    ec2.create_launch_template_version(LaunchTemplateName="shape", SourceVersion="1", LaunchTemplateData=changed)
    found = stage.leeward("drift", "--group", "shape").document["nodes"]
    classes = {why["field"]: why["class"] for one in found for why in one["reasons"]}
    assert classes == {
        "requirements": "dynamic",
        "securityGroups": "dynamic",
        "userData": "static",
        "blockDevices": "static",
        "detailedMonitoring": "static",
        "metadataOptions": "static",
        "tags": "static",
    }
    assert {one["remedy"] for one in found} == {"replace"}
    ec2.create_launch_template_version(
        LaunchTemplateName="shape", LaunchTemplateData=version_of(ec2, "1"), VersionDescription="as the first"
    )


def version_of(ec2, number):
    found = ec2.describe_launch_template_versions(LaunchTemplateName="shape", Versions=[number])
    return found["LaunchTemplateVersions"][0]["LaunchTemplateData"]


def test_nodes_in_order_again_lose_their_annotations(stage):
    stage.apply([policy("shape", **DRIFT)])
    assert stage.decide() == []
    assert (drift_of(stage), noted(stage)) == ({}, {})
