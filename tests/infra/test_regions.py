"""One account, several Regions and partitions: no physical name that an account holds once is used twice."""

import pytest

from infra.names import Names
from tests.infra.conftest import EVERYTHING, LONG_NAME, synthesize

# Types whose physical names are unique in an account (or in all of AWS), not in a Region: AWS's resource documentation.
ACCOUNT_GLOBAL = {
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::Route53::HostedZone": "Name",
    "AWS::CloudFront::CachePolicy": "Name",
}


def in_region(tmp_path, region):
    clusters = [{**cluster, "region": region} for cluster in EVERYTHING["clusters"]]
    return synthesize(tmp_path / region, leeward={**EVERYTHING, "clusters": clusters})


def global_names(template):
    return {
        (kind, properties[name])
        for kind, name in ACCOUNT_GLOBAL.items()
        for properties in template.resources(kind).values()
        if name in properties
    }


def test_two_regions_of_an_account_share_no_account_global_name(tmp_path):
    ours, theirs = (global_names(in_region(tmp_path, region)) for region in ("eu-west-1", "ap-southeast-3"))
    assert len(ours) == len(theirs) == 5, "a dashboard, and two roles for each of two clusters"
    assert not ours & theirs


def test_a_template_without_a_region_names_it_by_the_pseudo_parameter(template):
    named = global_names(template)
    assert {name for _, name in named} == {
        "leeward-us-east-1",
        "leeward-us-east-1-demo-act",
        "leeward-us-east-1-demo-taint",
    }


@pytest.mark.parametrize("region", ["us-east-1", "ap-southeast-3", "us-gov-west-1", "cn-northwest-1", "us-isob-east-1"])
def test_role_names_fit_with_clusters_of_any_name(region):
    for cluster in ("prod", LONG_NAME, "x" * 100):
        for access in ("act", "taint"):
            assert len(Names().cluster_role(region, cluster, access)) <= 64


def test_clusters_whose_long_names_begin_alike_have_roles_of_their_own():
    assert len({Names().cluster_role("eu-west-1", "x" * 80 + end, "act") for end in "ab"}) == 2


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_no_arn_of_ours_names_another_partition(tmp_path, region):
    text = str(in_region(tmp_path, region).raw["Resources"])
    for arn in (
        *EVERYTHING["senders"]["roles"],
        *EVERYTHING["senders"]["topics"],
        *EVERYTHING["nodeRoles"],
        EVERYTHING["alarmTopic"],
    ):
        text = text.replace(arn, "")  # given by the settings
    assert "arn:aws:" not in text
