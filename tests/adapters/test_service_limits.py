"""What only pre-flight asks of AWS: the requests, and how answers are read."""

from datetime import UTC, datetime, timedelta

import pytest

from leeward.adapters.aws.monitoring import AwsServiceLimits, is_standard
from leeward.errors import AccessDeniedError, ObjectGoneError
from leeward.model.image import Image

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


@pytest.fixture
def ask(aws):
    return AwsServiceLimits(aws.clients)


def test_refreshes_that_have_not_ended_are_reported(aws, ask):
    states = ("InProgress", "Successful", "RollbackInProgress", "Cancelled", "Pending", "Failed", "Baking")
    raw = [{"InstanceRefreshId": state, "Status": state} for state in states]
    aws.expect(
        "autoscaling", "describe_instance_refreshes", {"AutoScalingGroupName": "web"}, {"InstanceRefreshes": raw}
    )
    assert ask.refreshes("web") == ("InProgress", "RollbackInProgress", "Pending", "Baking")


def test_scheduled_actions_are_reported_by_name(aws, ask):
    answer = {"ScheduledUpdateGroupActions": [{"ScheduledActionName": "nightly"}, {"ScheduledActionName": "weekly"}]}
    aws.expect("autoscaling", "describe_scheduled_actions", {"AutoScalingGroupName": "web"}, answer)
    assert ask.scheduled("web") == ("nightly", "weekly")


def test_the_control_planes_version_is_the_clusters(aws, ask):
    aws.expect("eks", "describe_cluster", {"name": "blue"}, {"cluster": {"version": "1.33"}})
    assert ask.control_plane("blue") == "1.33"
    aws.refuse("eks", "describe_cluster", "ResourceNotFoundException")
    with pytest.raises(ObjectGoneError):
        ask.control_plane("green")


@pytest.mark.parametrize(("ec2", "reported"), [("x86_64", "amd64"), ("arm64", "arm64"), ("i386", "")])
def test_an_images_architecture_is_in_kubernetes_word(aws, ask, ec2, reported):
    asked = {"Filters": [{"Name": "image-id", "Values": ["ami-1"]}], "IncludeDeprecated": True}
    aws.expect("ec2", "describe_images", asked, {"Images": [{"ImageId": "ami-1", "Architecture": ec2}]})
    assert ask.images(["ami-1"])["ami-1"].architecture == reported
    aws.expect("ec2", "describe_images", asked, {"Images": []})
    assert ask.images(["ami-1"]) == {}


def test_images_are_read_together_with_their_owners(aws, ask):
    asked = {"Filters": [{"Name": "image-id", "Values": ["ami-1", "ami-2"]}], "IncludeDeprecated": True}
    answer = [{"ImageId": "ami-2", "OwnerId": "602401143452", "ImageOwnerAlias": "amazon", "Architecture": "arm64"}]
    aws.expect("ec2", "describe_images", asked, {"Images": answer})
    assert ask.images(["ami-2", "ami-1", "ami-2"]) == {
        "ami-2": Image(id="ami-2", architecture="arm64", owner="602401143452", alias="amazon")
    }
    assert ask.images([]) == {}


@pytest.mark.parametrize(
    ("text", "created"), [("2026-05-01T12:00:00.000Z", datetime(2026, 5, 1, 12, tzinfo=UTC)), ("x", None)]
)
def test_an_image_has_the_moment_of_its_creation(aws, ask, text, created):
    asked = {"Filters": [{"Name": "image-id", "Values": ["ami-1"]}], "IncludeDeprecated": True}
    aws.expect("ec2", "describe_images", asked, {"Images": [{"ImageId": "ami-1", "CreationDate": text}]})
    assert ask.images(["ami-1"])["ami-1"].created == created


def quota(aws, code, value):
    asked = {"ServiceCode": "ec2", "QuotaCode": code}
    aws.expect("service-quotas", "get_service_quota", asked, {"Quota": {"QuotaCode": code, "Value": value}})


def used(aws, kind, *points):
    named = (("Service", "EC2"), ("Resource", "vCPU"), ("Type", "Resource"), ("Class", kind))
    asked = {
        "Namespace": "AWS/Usage",
        "MetricName": "ResourceCount",
        "Dimensions": [{"Name": name, "Value": value} for name, value in named],
        "StartTime": NOW - timedelta(minutes=15),
        "EndTime": NOW,
        "Period": 300,
        "Statistics": ["Maximum"],
    }
    answer = {"Datapoints": [{"Maximum": point} for point in points]}
    aws.expect("cloudwatch", "get_metric_statistics", asked, answer)


@pytest.mark.parametrize(
    ("spot", "code", "kind"), [(False, "L-1216C47A", "Standard/OnDemand"), (True, "L-34B43A08", "Standard/Spot")]
)
def test_what_is_left_is_the_quota_less_the_most_that_was_used_lately(aws, ask, spot, code, kind):
    quota(aws, code, 64.0)
    used(aws, kind, 40.0, 52.0)
    assert ask.vcpus_left(["m5.large", "c6i.xlarge"], NOW, spot=spot) == 12


def test_a_quota_that_is_used_up_leaves_none_and_one_that_is_not_measured_is_not_known(aws, ask):
    quota(aws, "L-1216C47A", 8.0)
    used(aws, "Standard/OnDemand", 10.0)
    assert ask.vcpus_left(["m5.large"], NOW, spot=False) == 0
    quota(aws, "L-1216C47A", 8.0)
    used(aws, "Standard/OnDemand")
    assert ask.vcpus_left(["m5.large"], NOW, spot=False) is None


def test_types_with_a_quota_of_their_own_are_not_judged(ask):
    assert ask.vcpus_left(["m5.large", "p5.48xlarge"], NOW, spot=False) is None
    assert ask.vcpus_left([], NOW, spot=False) is None


def test_a_denied_call_says_which(aws, ask):
    aws.refuse("service-quotas", "get_service_quota", "AccessDeniedException", "no")
    with pytest.raises(AccessDeniedError, match="servicequotas:GetServiceQuota"):
        ask.vcpus_left(["m5.large"], NOW, spot=False)


@pytest.mark.parametrize("family", ["a1", "c7g", "d3en", "h1", "i4i", "im4gn", "m7a", "r6id", "t4g", "z1d"])
def test_families_of_the_standard_quota(family):
    assert is_standard(f"{family}.large")


@pytest.mark.parametrize(
    "family", ["dl1", "f1", "g5", "hpc7a", "inf2", "mac2", "p4d", "trn1", "vt1", "x2idn", "u-6tb1"]
)
def test_families_with_a_quota_of_their_own(family):
    assert not is_standard(f"{family}.large")
