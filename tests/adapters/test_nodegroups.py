"""DescribeNodegroup, launch templates and instance types: the requests, and what errors become."""

import uuid
from typing import ClassVar

import pytest

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.launch_templates import Ec2LaunchSources
from leeward.adapters.aws.nodegroups import EksNodegroups
from leeward.errors import AccessDeniedError, InvalidInputError, ObjectGoneError
from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.build import Sources, expected_node
from leeward.node_template.cache import NodegroupCache
from leeward.node_template.choices import choices
from leeward.policy.document import TemplatePolicy
from tests.cli.command import Command
from tests.fakes.clock import FakeClock
from tests.fakes.nodegroups import FakeNodegroups
from tests.unit.node_template.builders import PREFIX, a_group

WEB = {"clusterName": "blue", "nodegroupName": "web"}
MANY = {f"example.com/label-{number}": str(number) for number in range(60)}
MINUTE = TemplatePolicy().ttl


class TestNodegroups:
    def test_the_request_names_cluster_and_node_group(self, aws):
        answer = {**WEB, "labels": {"team": "web"}, "capacityType": "SPOT", "amiType": "AL2023_x86_64_STANDARD"}
        aws.expect("eks", "describe_nodegroup", WEB, {"nodegroup": answer})
        found = EksNodegroups(aws.clients).describe("blue", "web")
        assert (found.name, found.cluster, found.labels, found.capacity_type) == (
            "web",
            "blue",
            {"team": "web"},
            "SPOT",
        )

    @pytest.mark.parametrize(
        ("code", "error"),
        [("AccessDeniedException", AccessDeniedError), ("ResourceNotFoundException", ObjectGoneError)],
    )
    def test_errors_name_the_call_and_its_object(self, aws, code, error):
        aws.refuse("eks", "describe_nodegroup", code, "because")
        with pytest.raises(error, match=f"eks:DescribeNodegroup on blue/web: {code}: because"):
            EksNodegroups(aws.clients).describe("blue", "web")

    def test_an_unknown_effect_voids_the_answer(self, aws):
        taint = {"key": "a", "value": "b", "effect": "NEVER"}
        aws.expect("eks", "describe_nodegroup", WEB, {"nodegroup": {**WEB, "taints": [taint]}})
        with pytest.raises(InvalidInputError, match="eks:DescribeNodegroup on blue/web: taint a: found effect 'NEVER'"):
            EksNodegroups(aws.clients).describe("blue", "web")


class TestLaunchSources:
    @pytest.mark.parametrize(
        ("raw", "request_"),
        [
            (
                {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web"},
                {"LaunchTemplateId": "lt-1", "Versions": ["$Default"]},
            ),
            (
                {"LaunchTemplateName": "web", "Version": "$Latest"},
                {"LaunchTemplateName": "web", "Versions": ["$Latest"]},
            ),
            ({"LaunchTemplateId": "lt-1", "Version": "7"}, {"LaunchTemplateId": "lt-1", "Versions": ["7"]}),
        ],
    )
    def test_the_version_that_the_group_names_is_asked_for(self, aws, raw, request_):
        version = {"LaunchTemplateId": "lt-1", "VersionNumber": 7, "LaunchTemplateData": {"InstanceType": "m5.large"}}
        aws.expect("ec2", "describe_launch_template_versions", request_, {"LaunchTemplateVersions": [version]})
        found = Ec2LaunchSources(aws.clients).settings(a_group(LaunchTemplate=raw))
        assert (found.version, found.instance_type) == (7, "m5.large")

    def test_an_image_by_parameter_is_the_one_that_the_parameter_names_now(self, aws):
        self.expect_alias(aws)
        resolved = {"LaunchTemplateVersions": [self.a_version("ami-2")]}
        aws.expect("ec2", "describe_launch_template_versions", {**self.ASKED, "ResolveAlias": True}, resolved)
        assert Ec2LaunchSources(aws.clients).settings(a_group(LaunchTemplate=self.REF)).image == "ami-2"

    @pytest.mark.parametrize("code", ["UnauthorizedOperation", "InvalidParameterValue", "ParameterNotFound"])
    def test_a_parameter_that_is_gone_or_denied_leaves_its_name(self, aws, code):
        self.expect_alias(aws)
        aws.refuse("ec2", "describe_launch_template_versions", code)
        assert Ec2LaunchSources(aws.clients).settings(a_group(LaunchTemplate=self.REF)).image == self.ALIAS

    ALIAS = "resolve:ssm:/golden/web"
    REF: ClassVar = {"LaunchTemplateId": "lt-1", "LaunchTemplateName": "web", "Version": "7"}
    ASKED: ClassVar = {"LaunchTemplateId": "lt-1", "Versions": ["7"]}

    def a_version(self, image):
        return {"LaunchTemplateId": "lt-1", "VersionNumber": 7, "LaunchTemplateData": {"ImageId": image}}

    def expect_alias(self, aws):
        answer = {"LaunchTemplateVersions": [self.a_version(self.ALIAS)]}
        aws.expect("ec2", "describe_launch_template_versions", self.ASKED, answer)

    @pytest.mark.parametrize("code", ["InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.VersionNotFound"])
    def test_a_template_that_is_gone_is_none(self, aws, code):
        aws.refuse("ec2", "describe_launch_template_versions", code)
        assert Ec2LaunchSources(aws.clients).settings(a_group()) is None

    def test_a_launch_configuration_is_asked_for_by_name(self, aws):
        raw = {
            "LaunchConfigurationName": "old",
            "ImageId": "ami-1",
            "InstanceType": "m5.large",
            "CreatedTime": "2026-03-01T00:00:00Z",
        }
        parameters = {"LaunchConfigurationNames": ["old"]}
        aws.expect("autoscaling", "describe_launch_configurations", parameters, {"LaunchConfigurations": [raw]})
        found = Ec2LaunchSources(aws.clients).settings(a_group(LaunchConfigurationName="old"))
        assert found.instance_type == "m5.large"

    IMAGE: ClassVar = {"Filters": [{"Name": "image-id", "Values": ["ami-1"]}], "IncludeDeprecated": True}

    def test_an_image_is_asked_for_once(self, aws):
        raw = {"ImageId": "ami-1", "Architecture": "arm64", "Platform": "windows"}
        aws.expect("ec2", "describe_images", self.IMAGE, {"Images": [raw]})
        sources = Ec2LaunchSources(aws.clients)
        assert [sources.image("ami-1"), sources.image("ami-1")] == [Image.from_json(raw)] * 2

    def test_an_image_that_is_denied_is_not_known_and_not_asked_for_again(self, aws):
        aws.refuse("ec2", "describe_images", "UnauthorizedOperation")
        sources = Ec2LaunchSources(aws.clients)
        assert (sources.image("ami-1"), sources.image("ami-1")) == (None, None)

    def test_types_are_asked_for_in_hundreds_and_once_per_process(self, aws):
        wanted = [f"m5.{number:03}" for number in range(101)]
        for chunk in (wanted[:100], wanted[100:]):
            parameters = {"Filters": [{"Name": "instance-type", "Values": chunk}]}
            aws.expect("ec2", "describe_instance_types", parameters, {"InstanceTypes": [{"InstanceType": chunk[0]}]})
        sources = Ec2LaunchSources(aws.clients)
        assert set(sources.instance_types(wanted)) == {"m5.000", "m5.100"}
        assert set(sources.instance_types(["m5.000"])) == {"m5.000"}

    def test_all_types_are_read_page_by_page_and_once(self, aws):
        aws.expect(
            "ec2", "describe_instance_types", {}, {"InstanceTypes": [{"InstanceType": "a1.large"}], "NextToken": "t"}
        )
        aws.expect(
            "ec2", "describe_instance_types", {"NextToken": "t"}, {"InstanceTypes": [{"InstanceType": "m5.large"}]}
        )
        sources = Ec2LaunchSources(aws.clients)
        assert set(sources.all_instance_types()) == set(sources.all_instance_types()) == {"a1.large", "m5.large"}
        assert sources.instance_types(["m5.large", "m9.large"]).keys() == {"m5.large"}


@pytest.fixture
def ours(local_aws, aws_environment, monkeypatch):
    """The adapters on the local AWS, a cluster, and a managed node group at zero with more labels than tags allow."""
    for name, value in {"AWS_ENDPOINT_URL": local_aws.endpoint, "AWS_ACCESS_KEY_ID": "test"}.items():
        monkeypatch.setenv(name, value)
    eks, ec2, cluster = local_aws.client("eks"), local_aws.client("ec2"), f"c-{uuid.uuid4().hex[:8]}"
    role = "arn:aws:iam::000000000000:role/eks"
    eks.create_cluster(name=cluster, roleArn=role, resourcesVpcConfig={"subnetIds": []})
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    eks.create_nodegroup(
        clusterName=cluster,
        nodegroupName="web",
        nodeRole=role,
        subnets=[subnet],
        instanceTypes=["m5.large"],
        capacityType="SPOT",
        labels=MANY,
        taints=[{"key": "dedicated", "value": "web", "effect": "NO_EXECUTE"}],
        scalingConfig={"minSize": 0, "maxSize": 3, "desiredSize": 0},
    )
    yield cluster
    local_aws.control("DELETE", "faults")
    eks.delete_nodegroup(clusterName=cluster, nodegroupName="web")


@pytest.mark.local
class TestOnLocalAws:
    def group(self, local_aws, cluster):
        """As Auto Scaling describes it, with a tag that names one of the labels too."""
        described = local_aws.client("eks").describe_nodegroup(clusterName=cluster, nodegroupName="web")["nodegroup"]
        name = described["resources"]["autoScalingGroups"][0]["name"]
        asg = local_aws.client("autoscaling")
        tag = {"Key": PREFIX + "label/example.com/label-1", "Value": "tag", "PropagateAtLaunch": True}
        asg.create_or_update_tags(Tags=[{**tag, "ResourceId": name, "ResourceType": "auto-scaling-group"}])
        return Group.from_json(asg.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"][0])

    def node(self, group, cache):
        """The template as a caller makes it: from what the group says, through the cache."""
        launches = Ec2LaunchSources(AwsClients())
        launch, nodegroup = launches.settings(group), cache.get(group.cluster, group.nodegroup, MINUTE)
        found = choices(group, launch, nodegroup, known={})
        types = launches.instance_types(found.types)
        return expected_node(Sources(group=group, choices=found, launch=launch, nodegroup=nodegroup, types=types))

    def cache(self, said):
        nodegroups = EksNodegroups(AwsClients())
        return NodegroupCache(nodegroups, FakeClock(), chance=lambda: 0.0, say=said.append)

    def test_a_group_at_zero_with_more_labels_than_tags_allow_yields_the_right_node(self, local_aws, ours):
        said = []
        node = self.node(self.group(local_aws, ours), self.cache(said))
        assert {**MANY, "example.com/label-1": "tag"}.items() <= node.labels.items()
        expected = {
            "eks.amazonaws.com/nodegroup": "web",
            "eks.amazonaws.com/capacityType": "SPOT",
            "cluster-name": ours,
            "node.kubernetes.io/instance-type": "m5.large",
            "topology.kubernetes.io/zone": "us-east-1a",
        }
        assert expected.items() <= node.labels.items()
        assert [(taint.key, taint.value, taint.effect) for taint in node.taints] == [("dedicated", "web", "NoExecute")]
        assert node.to_json()["status"]["allocatable"]["cpu"] == "1930m"
        assert said == []

    def test_with_the_permission_denied_the_tags_alone_are_used_and_it_is_said_once(self, local_aws, ours):
        said, group = [], self.group(local_aws, ours)
        cache = self.cache(said)
        fault = {"service": "eks", "action": "DescribeNodegroup", "code": "AccessDeniedException", "status": 403}
        local_aws.control("POST", "faults", {**fault, "times": None})
        nodes = [self.node(group, cache) for _ in range(5)]
        node = nodes[0]
        assert nodes == [node] * 5
        assert node.labels["example.com/label-1"] == "tag"
        assert "example.com/label-2" not in node.labels
        assert node.taints == ()
        assert (node.labels["nodegroup-name"], node.labels["cluster-name"]) == ("web", ours)
        assert len(said) == 1
        assert f"eks:DescribeNodegroup on {ours}/web: AccessDeniedException" in said[0]

    def test_the_command_shows_it_live_and_says_once_what_is_denied(self, local_aws, ours, capsys):
        leeward, group = Command(capsys), self.group(local_aws, ours).name
        shown = leeward("inspect", "template", group, "--cluster", ours, "-o", "json")
        assert (shown.code, len(shown.err.splitlines())) == (0, 1)  # a tag wins over a label of the node group
        assert MANY.keys() <= shown.json["metadata"]["labels"].keys()
        assert shown.json["status"]["allocatable"]["memory"] == "6903Mi"
        fault = {"service": "eks", "action": "DescribeNodegroup", "code": "AccessDeniedException", "status": 403}
        local_aws.control("POST", "faults", fault)
        denied = leeward("inspect", "template", group, "--cluster", ours, "-o", "json")
        assert denied.code == 0
        assert denied.json["metadata"]["labels"]["example.com/label-1"] == "tag"
        assert "example.com/label-2" not in denied.json["metadata"]["labels"]
        assert len(denied.err.splitlines()) == 1
        assert "only the group's tags are used" in denied.err
        assert "found no group 'x'" in leeward.refuses("inspect", "template", "x", "--cluster", ours)

    @pytest.mark.parametrize("kind", ["fake", "aws"])
    def test_the_fake_and_the_adapter_answer_alike(self, ours, kind):
        """The contract of `ports.eks.Nodegroups`: known as described, unknown is ObjectGoneError."""
        real = EksNodegroups(AwsClients())
        port = FakeNodegroups([real.describe(ours, "web")]) if kind == "fake" else real
        found = port.describe(ours, "web")
        assert isinstance(found, Nodegroup)
        assert (found.cluster, found.name, found.labels) == (ours, "web", MANY)
        for cluster, name in ((ours, "no-such"), ("no-such", "web")):
            with pytest.raises(ObjectGoneError):
                port.describe(cluster, name)
