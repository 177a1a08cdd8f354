"""LaunchInstances launches exactly there, once per token, or says why not."""

import pytest
from botocore.exceptions import ClientError


@pytest.fixture
def launch(asg):
    def call(group, token="t-1", capacity=1, **more):
        return asg.launch_instances(
            AutoScalingGroupName=group.name, RequestedCapacity=capacity, ClientToken=token, **more
        )

    return call


def refusal(call, *arguments, **more):
    with pytest.raises(ClientError) as caught:
        call(*arguments, **more)
    return caught.value.response["Error"]


def test_instances_start_in_the_named_subnet_and_raise_the_desired_capacity(a_group, launch):
    group = a_group(desired=1)
    answer = launch(group, capacity=2, SubnetIds=[group.subnets[1]])
    collection = answer["Instances"][0]
    assert (collection["InstanceType"], collection["MarketType"]) == ("m5.large", "on-demand")
    assert (collection["SubnetId"], collection["AvailabilityZone"]) == (group.subnets[1], "us-east-1b")
    assert collection["AvailabilityZoneId"].startswith("use1-az")
    assert len(collection["InstanceIds"]) == 2
    assert not answer["Errors"]
    assert group.describe()["DesiredCapacity"] == 3
    assert {group.states()[key] for key in collection["InstanceIds"]} <= {"Pending", "InService"}
    placed = group.instances(collection["InstanceIds"])
    assert {item["SubnetId"] for item in placed} == {group.subnets[1]}
    group.in_service(3)


def test_the_same_token_launches_once(a_group, launch):
    group = a_group(desired=0)
    first = launch(group, AvailabilityZones=["us-east-1a"])
    again = launch(group, AvailabilityZones=["us-east-1a"])
    assert first["Instances"] == again["Instances"]
    assert group.describe()["DesiredCapacity"] == 1
    other = refusal(launch, group, capacity=2, AvailabilityZones=["us-east-1a"])
    assert other["Code"] == "IdempotentParameterMismatch"


def test_what_the_group_does_not_allow_is_refused(a_group, launch):
    group = a_group(desired=0, maximum=1)
    assert "required" in refusal(launch, group)["Message"]
    assert "not one of" in refusal(launch, group, SubnetIds=["subnet-00000000"])["Message"]
    assert "not one of" in refusal(launch, group, AvailabilityZones=["us-east-1f"])["Message"]
    assert "maximum size 1" in refusal(launch, group, capacity=2, AvailabilityZones=["us-east-1a"])["Message"]
    mixed = {"InstancesDistribution": {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 50}}
    both = a_group(desired=0, MixedInstancesPolicy=mixed)
    error = refusal(launch, both, AvailabilityZones=["us-east-1a"])
    assert (error["Code"], "mixed purchase options" in error["Message"]) == ("ValidationError", True)


def test_missing_capacity_is_an_error_entry_and_nothing_is_launched(a_group, launch, aws):
    group = a_group(desired=0)
    aws.control("POST", "capacity", {"zone": "us-east-1c", "type": "m5.large"})
    answer = launch(group, AvailabilityZones=["us-east-1c"])
    assert answer["Instances"] == []
    assert answer["Errors"][0]["ErrorCode"] == "InsufficientInstanceCapacity"
    assert answer["Errors"][0]["SubnetId"] == group.subnets[2]
    assert group.describe()["DesiredCapacity"] == 0
    assert launch(group, "t-2", AvailabilityZones=["us-east-1a"])["Errors"] == []


def test_a_full_subnet_is_an_error_entry(a_group, launch):
    group = a_group(desired=0, maximum=20, zones="a", cidr="10.0.{}.0/28")
    answer = launch(group, capacity=12)
    assert len(answer["Instances"][0]["InstanceIds"]) == 11
    assert answer["Errors"][0]["ErrorCode"] == "InsufficientFreeAddressesInSubnet"
    assert group.describe()["DesiredCapacity"] == 11


def test_launch_hooks_hold_what_was_launched(a_group, launch, asg):
    group = a_group(desired=0)
    asg.put_lifecycle_hook(
        AutoScalingGroupName=group.name,
        LifecycleHookName="join",
        LifecycleTransition="autoscaling:EC2_INSTANCE_LAUNCHING",
    )
    answer = launch(group, AvailabilityZones=["us-east-1a"])
    assert group.states() == {answer["Instances"][0]["InstanceIds"][0]: "Pending:Wait"}


def test_the_launch_time_that_a_test_sets_is_what_ec2_reports(aws, a_group):
    group = a_group(desired=1)
    (instance,) = group.in_service(1)
    before = group.instances([instance])[0]["LaunchTime"]
    aws.control("PUT", f"instances/{instance}", {"launchedSecondsAgo": 1000})
    assert 900 < (before - group.instances([instance])[0]["LaunchTime"]).total_seconds() <= 1000
