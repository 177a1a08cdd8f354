"""Recorded calls name their resources, the table's keys and the tags of groups and templates, as IAM evaluates them."""

import uuid

import pytest
from botocore.config import Config

pytestmark = pytest.mark.local

ACCOUNT, REGION = "000000000000", "us-east-1"
TAG = "kubernetes.io/cluster/demo"


@pytest.fixture
def caller(aws):
    """Clients of a function, and what was recorded of it: (action, resource, context)."""
    name = f"leeward-{uuid.uuid4().hex[:8]}"

    class Caller:
        def client(self, service):
            return aws.client(service, config=Config(user_agent_appid=name))

        def requests(self):
            found = [one for one in aws.control("GET", "requests") if one["function"] == name]
            return [(one["action"], one["resource"], one["context"]) for one in found]

    return Caller()


def arn(service, resource):
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"


def test_items_of_the_table_are_named_by_their_keys(aws, caller):
    table = f"t-{uuid.uuid4().hex[:8]}"
    aws.client("dynamodb").create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    client, on = caller.client("dynamodb"), arn("dynamodb", f"table/{table}")
    client.put_item(TableName=table, Item={"pk": {"S": "upgrade#web"}})
    client.get_item(TableName=table, Key={"pk": {"S": "plan#web"}})
    client.batch_get_item(RequestItems={table: {"Keys": [{"pk": {"S": "facts#a"}}, {"pk": {"S": "facts#b"}}]}})
    assert sorted(caller.requests()) == [
        ("dynamodb:BatchGetItem", on, {"dynamodb:LeadingKeys": ["facts#a", "facts#b"]}),
        ("dynamodb:GetItem", on, {"dynamodb:LeadingKeys": ["plan#web"]}),
        ("dynamodb:PutItem", on, {"dynamodb:LeadingKeys": ["upgrade#web"]}),
    ]


def test_groups_and_templates_carry_their_tags(aws, caller):
    name = f"g-{uuid.uuid4().hex[:8]}"
    template = aws.client("ec2").create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={"InstanceType": "m5.large", "ImageId": "ami-1"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": TAG, "Value": "owned"}]}],
    )["LaunchTemplate"]["LaunchTemplateId"]
    aws.client("autoscaling").create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=1,
        AvailabilityZones=[f"{REGION}a"],
        LaunchTemplate={"LaunchTemplateId": template},
        Tags=[{"Key": TAG, "Value": "shared", "PropagateAtLaunch": True}],
    )
    caller.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    caller.client("autoscaling").put_lifecycle_hook(
        AutoScalingGroupName=name,
        LifecycleHookName="leeward-terminate",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    )
    caller.client("ec2").create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"ImageId": "ami-2"}
    )
    assert sorted(caller.requests()) == [
        ("autoscaling:DescribeAutoScalingGroups", "*", {}),
        (
            "autoscaling:PutLifecycleHook",
            arn("autoscaling", f"autoScalingGroup:id:autoScalingGroupName/{name}"),
            {f"aws:ResourceTag/{TAG}": ["shared"]},
        ),
        (
            "ec2:CreateLaunchTemplateVersion",
            arn("ec2", f"launch-template/{template}"),
            {f"aws:ResourceTag/{TAG}": ["owned"]},
        ),
    ]


def test_roles_parameters_and_events_are_named(caller):
    role = f"arn:aws:iam::{ACCOUNT}:role/leeward-us-east-1-demo-taint"
    caller.client("sts").assume_role(RoleArn=role, RoleSessionName="leeward")
    caller.client("ssm").get_parameters_by_path(Path="/leeward/demo/policies")
    put = {"Source": "leeward", "DetailType": "t", "Detail": "{}"}
    caller.client("events").put_events(Entries=[put, {**put, "EventBusName": "leeward-notifications"}])
    assert sorted(caller.requests()) == [
        ("events:PutEvents", arn("events", "event-bus/default"), {"events:source": ["leeward"]}),
        ("events:PutEvents", arn("events", "event-bus/leeward-notifications"), {"events:source": ["leeward"]}),
        ("ssm:GetParametersByPath", arn("ssm", "parameter/leeward/demo/policies"), {}),
        ("sts:AssumeRole", role, {}),
    ]
