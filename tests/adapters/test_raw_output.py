"""What `leeward snapshot` asks of AWS: batches, pages, and answers as the `aws` command prints them."""

from datetime import UTC, datetime

import pytest

from leeward.adapters.aws.raw_output import AwsRawOutput
from leeward.errors import AccessDeniedError, InvalidPolicyError, ObjectGoneError
from leeward.model.launch import LaunchTemplateRef
from simulation.aws.applied_policies import SimPolicyStore
from tests.adapters.test_groups import raw_group

CREATED = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
TEMPLATE = LaunchTemplateRef(id="lt-1")


@pytest.fixture
def raw(aws):
    return AwsRawOutput(aws.clients, "/leeward", SimPolicyStore().read)


def test_times_are_text_and_the_rest_is_as_aws_says_it(aws, raw):
    answer = {"AutoScalingGroups": [raw_group("web-a", team="web") | {"CreatedTime": CREATED}]}
    asked = {"Filters": [{"Name": "tag-key", "Values": ["team"]}], "MaxRecords": 100}
    aws.expect("autoscaling", "describe_auto_scaling_groups", asked, answer)
    (group,) = raw.groups_tagged(["team"])
    assert group == raw_group("web-a", team="web") | {"CreatedTime": "2026-03-01T08:00:00+00:00"}


def test_groups_are_read_page_by_page_and_each_is_there_once(aws, raw):
    tag_keys = [f"key-{number:02}" for number in range(51)]
    first = {"Filters": [{"Name": "tag-key", "Values": tag_keys[:50]}], "MaxRecords": 100}
    page = lambda *names: {"AutoScalingGroups": [raw_group(name) for name in names]}  # noqa: E731
    call = "describe_auto_scaling_groups"
    aws.expect("autoscaling", call, first, {**page("a"), "NextToken": "t"})
    aws.expect("autoscaling", call, {**first, "NextToken": "t"}, page("b"))
    last = {"Filters": [{"Name": "tag-key", "Values": tag_keys[50:]}], "MaxRecords": 100}
    aws.expect("autoscaling", call, last, page("a"))
    assert [one["AutoScalingGroupName"] for one in raw.groups_tagged(tag_keys)] == ["a", "b"]


def test_a_group_that_is_gone_has_no_hooks(aws, raw):
    aws.refuse("autoscaling", "describe_lifecycle_hooks", "ValidationError", "AutoScalingGroup name not found")
    assert raw.hooks("web-a") == ()


def test_nothing_named_asks_nothing_because_that_would_mean_everything(raw):
    assert raw.launch_configurations([]) == raw.instance_types([]) == raw.reservations([]) == ()
    assert raw.groups_tagged([]) == raw.subnets([]) == raw.subnets_tagged([], "key") == ()


def test_instances_go_in_batches_of_200_and_keep_their_reservations(aws, raw):
    ids = [f"i-{number:04}" for number in range(201)]
    for chunk in (ids[:200], ids[200:]):
        asked = {"Filters": [{"Name": "instance-id", "Values": chunk}]}
        found = {"ReservationId": f"r-{chunk[0]}", "Instances": [{"InstanceId": chunk[0], "LaunchTime": CREATED}]}
        aws.expect("ec2", "describe_instances", asked, {"Reservations": [found]})
    first, second = raw.reservations(ids)
    assert first["Instances"] == [{"InstanceId": "i-0000", "LaunchTime": "2026-03-01T08:00:00+00:00"}]
    assert second["ReservationId"] == "r-i-0200"


def test_each_kind_of_status_check_is_asked_for_those_that_fail_it(aws, raw):
    for check in ("system-status.status", "instance-status.status", "attached-ebs-status.status"):
        asked = {"Filters": [{"Name": check, "Values": ["impaired"]}]}
        aws.expect("ec2", "describe_instance_status", asked, {"InstanceStatuses": [{"InstanceId": check}]})
    assert [one["InstanceId"].partition("-")[0] for one in raw.impaired()] == ["system", "instance", "attached"]


class TestLaunchTemplateVersions:
    def expect(self, aws, versions, *numbers):
        found = [{"LaunchTemplateId": "lt-1", "VersionNumber": number} for number in numbers]
        asked = {"LaunchTemplateId": "lt-1", "Versions": versions}
        aws.expect("ec2", "describe_launch_template_versions", asked, {"LaunchTemplateVersions": found})

    def refuse(self, aws, versions, code):
        asked = {"LaunchTemplateId": "lt-1", "Versions": versions}
        aws.refuse("ec2", "describe_launch_template_versions", code, "no such", parameters=asked)

    def test_all_are_asked_for_at_once(self, aws, raw):
        self.expect(aws, ["$Default", "$Latest", "2"], 1, 3, 2)
        found = raw.template_versions(TEMPLATE, ["$Default", "$Latest", "2"])
        assert [one["VersionNumber"] for one in found] == [1, 3, 2]

    def test_one_that_was_deleted_does_not_hide_the_others(self, aws, raw):
        self.refuse(aws, ["$Latest", "2"], "InvalidLaunchTemplateId.VersionNotFound")
        self.expect(aws, ["$Latest"], 3)
        self.refuse(aws, ["2"], "InvalidLaunchTemplateId.VersionNotFound")
        assert [one["VersionNumber"] for one in raw.template_versions(TEMPLATE, ["$Latest", "2"])] == [3]

    def test_a_template_that_is_gone_has_none(self, aws, raw):
        self.refuse(aws, ["1"], "InvalidLaunchTemplateId.NotFound")
        assert raw.template_versions(TEMPLATE, ["1"]) == ()

    def test_by_name_where_no_id_is_known(self, aws, raw):
        asked = {"LaunchTemplateName": "web", "Versions": ["1"]}
        aws.expect("ec2", "describe_launch_template_versions", asked, {"LaunchTemplateVersions": []})
        assert raw.template_versions(LaunchTemplateRef(name="web"), ["1"]) == ()

    def test_any_other_refusal_is_an_error_that_names_call_and_template(self, aws, raw):
        self.refuse(aws, ["1"], "UnauthorizedOperation")
        with pytest.raises(AccessDeniedError, match="ec2:DescribeLaunchTemplateVersions on lt-1 versions 1"):
            raw.template_versions(TEMPLATE, ["1"])


def test_a_missing_permission_names_the_call_as_iam_does(aws, raw):
    aws.refuse("ec2", "describe_subnets", "UnauthorizedOperation", "You are not authorized")
    with pytest.raises(AccessDeniedError, match="ec2:DescribeSubnets on subnet-a and 1 more: UnauthorizedOperation"):
        raw.subnets(["subnet-a", "subnet-b"])


def test_subnets_of_a_vpc_are_narrowed_by_their_tag(aws, raw):
    filters = [{"Name": "vpc-id", "Values": ["vpc-1"]}, {"Name": "tag-key", "Values": ["kubernetes.io/role/cni"]}]
    aws.expect("ec2", "describe_subnets", {"Filters": filters}, {"Subnets": [{"SubnetId": "subnet-b"}]})
    assert raw.subnets_tagged(["vpc-1"], "kubernetes.io/role/cni") == ({"SubnetId": "subnet-b"},)


def test_answers_of_eks_are_whole(aws, raw):
    asked = {"clusterName": "blue", "nodegroupName": "workers"}
    answer = {"nodegroup": {"nodegroupName": "workers", "createdAt": CREATED}}
    aws.expect("eks", "describe_nodegroup", asked, answer)
    aws.expect("eks", "describe_cluster", {"name": "blue"}, {"cluster": {"name": "blue", "version": "1.33"}})
    reported = {"nodegroupName": "workers", "createdAt": "2026-03-01T08:00:00+00:00"}
    assert raw.nodegroup("blue", "workers") == {"nodegroup": reported}
    assert raw.cluster("blue") == {"cluster": {"name": "blue", "version": "1.33"}}


def test_a_cluster_that_is_not_there_is_gone(aws, raw):
    aws.refuse("eks", "describe_cluster", "ResourceNotFoundException", "No cluster found for name: red.", status=404)
    with pytest.raises(ObjectGoneError, match="eks:DescribeCluster on red"):
        raw.cluster("red")


class TestPolicies:
    def expect(self, aws, *pairs):
        found = [{"Name": f"/leeward/blue/policies/{name}", "Value": value} for name, value in pairs]
        aws.expect("ssm", "get_parameters_by_path", {"Path": "/leeward/blue/policies"}, {"Parameters": found})

    def test_they_come_in_the_order_of_their_names(self, aws, raw):
        self.expect(aws, ("01-web", '{"kind":"NodePolicy"}'), ("00-blue", '{"kind":"ClusterSettings"}'))
        assert [one["kind"] for one in raw.policies("blue")] == ["ClusterSettings", "NodePolicy"]

    @pytest.mark.parametrize("value", ["{", "[]", '"text"'])
    def test_what_is_no_document_is_named(self, aws, raw, value):
        self.expect(aws, ("01-web", value))
        with pytest.raises(InvalidPolicyError, match="/leeward/blue/policies/01-web: found"):
            raw.policies("blue")
