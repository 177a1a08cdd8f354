"""Auto Scaling groups keep their size, their zones and their manners."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from .conftest import eventually


def refused(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response


def test_a_group_spreads_its_instances_over_its_zones(a_group):
    group = a_group(desired=3)
    zones = {item["AvailabilityZone"] for item in group.describe()["Instances"]}
    assert zones == {"us-east-1a", "us-east-1b", "us-east-1c"}


def test_subnets_lose_an_address_per_instance_and_get_it_back(a_group, ec2, asg):
    group = a_group(desired=3)

    def free():
        found = ec2.describe_subnets(SubnetIds=group.subnets)["Subnets"]
        return sorted(subnet["AvailableIpAddressCount"] for subnet in found)

    assert free() == [250, 250, 250]
    asg.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=0)
    eventually(lambda: free() == [251, 251, 251])


def test_instances_carry_the_groups_tags_and_their_template_version(a_group, ec2):
    tags = [{"Key": "team", "Value": "web", "PropagateAtLaunch": True}, {"Key": "own", "Value": "1"}]
    group = a_group(Tags=tags)
    first = group.describe()["Instances"][0]
    described = group.instances([first["InstanceId"], "i-00000000000000000"])[0]
    found = {tag["Key"]: tag["Value"] for tag in described["Tags"]}
    assert found["team"] == "web"
    assert found["aws:autoscaling:groupName"] == group.name
    assert "own" not in found
    assert described["PrivateDnsName"].startswith("ip-10-0-")
    assert first["LaunchTemplate"]["Version"] == "1"
    ec2.create_launch_template_version(
        LaunchTemplateName=group.name, LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "m5.xlarge"}
    )
    group.asg.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=2)
    group.in_service(2)
    versions = {item["LaunchTemplate"]["Version"]: item["InstanceType"] for item in group.describe()["Instances"]}
    assert versions == {"1": "m5.large", "2": "m5.xlarge"}


def test_a_template_with_spot_options_launches_spot_instances(a_group):
    group = a_group(template={"InstanceMarketOptions": {"MarketType": "spot"}})
    assert group.instances(group.states())[0]["InstanceLifecycle"] == "spot"


def test_a_mixed_policy_decides_the_market_and_its_first_override_the_type(a_group):
    policy = {
        "LaunchTemplate": {"Overrides": [{"InstanceType": "c5.large"}, {"InstanceType": "m5.large"}]},
        "InstancesDistribution": {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0},
    }
    group = a_group(desired=3, MixedInstancesPolicy=policy)
    found = group.instances(group.states())
    assert sorted(item.get("InstanceLifecycle", "on-demand") for item in found) == ["on-demand", "spot", "spot"]
    assert {item["InstanceType"] for item in found} == {"c5.large"}


def test_a_small_update_leaves_the_mixed_policy_alone(a_group, asg):
    policy = {
        "LaunchTemplate": {"Overrides": [{"InstanceType": "c5.large"}]},
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0},
    }
    group = a_group(MixedInstancesPolicy=policy)
    asg.update_auto_scaling_group(AutoScalingGroupName=group.name, MaxSize=9, CapacityRebalance=True)
    described = group.describe()
    assert described["MaxSize"] == 9
    assert described["CapacityRebalance"] is True
    assert described["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"] == [{"InstanceType": "c5.large"}]
    assert "LaunchTemplate" not in described


@pytest.fixture
def slow_to_shut_down(aws):
    """So that a test sees it happen."""
    aws.control("PUT", "pace", {"boot": 0.2, "shutdown": 4.0})
    yield
    aws.control("PUT", "pace", {"boot": 0.2, "shutdown": 1.0})


def test_an_instance_shuts_down_before_it_is_terminated_and_events_are_sent(a_group, a_queue, slow_to_shut_down):
    queue = a_queue("aws.ec2")
    group = a_group()
    instance = group.in_service(1)[0]
    group.asg.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=True)
    assert group.instances([instance])[0]["State"]["Name"] == "shutting-down"
    queue.event(lambda event: event["detail"] == {"instance-id": instance, "state": "terminated"})
    states = [event["detail"]["state"] for event in queue.seen if event["detail"]["instance-id"] == instance]
    assert states == ["pending", "running", "shutting-down", "terminated"]
    group.in_service(0)


def test_unknown_groups_and_instances_are_validation_errors(asg):
    for call, arguments in [
        (asg.set_desired_capacity, {"AutoScalingGroupName": "none", "DesiredCapacity": 1}),
        (asg.suspend_processes, {"AutoScalingGroupName": "none", "ScalingProcesses": ["Launch"]}),
        (asg.describe_lifecycle_hooks, {"AutoScalingGroupName": "none"}),
        (asg.detach_instances, {"AutoScalingGroupName": "none", "ShouldDecrementDesiredCapacity": False}),
        (asg.set_instance_health, {"InstanceId": "i-00000000000000000", "HealthStatus": "Unhealthy"}),
        (
            asg.terminate_instance_in_auto_scaling_group,
            {"InstanceId": "i-00000000000000000", "ShouldDecrementDesiredCapacity": True},
        ),
    ]:
        answer = refused(call, **arguments)
        assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == ("ValidationError", 400), call


def test_sizes_outside_the_bounds_are_refused(a_group, asg):
    group = a_group(desired=1, minimum=1, maximum=2)
    too_much = refused(asg.set_desired_capacity, AutoScalingGroupName=group.name, DesiredCapacity=3)
    assert "above max value 2" in too_much["Error"]["Message"]
    instance = group.in_service(1)[0]
    below = refused(
        asg.terminate_instance_in_auto_scaling_group, InstanceId=instance, ShouldDecrementDesiredCapacity=True
    )
    assert "desiredSize equals minSize (1)" in below["Error"]["Message"]
    assert group.states() == {instance: "InService"}


def test_a_second_termination_of_the_same_instance_does_not_shrink_the_group_again(a_group, asg):
    group = a_group(desired=3)
    instance = group.in_service(3)[0]
    for _ in range(2):
        asg.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=True)
    assert group.describe()["DesiredCapacity"] == 2
    group.in_service(2)


def test_an_instance_that_dies_is_replaced_without_its_hooks(a_group, ec2, asg, aws):
    group = a_group()
    asg.put_lifecycle_hook(
        AutoScalingGroupName=group.name,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    )
    dead = group.in_service(1)[0]
    ec2.terminate_instances(InstanceIds=[dead])
    alive = eventually(lambda: [key for key, state in group.states().items() if key != dead and state == "InService"])
    eventually(lambda: list(group.states()) == alive)
    assert not [held for held in aws.control("GET", "hooks") if held["instance"] == dead]


def test_hooks_of_dead_instances_can_be_switched_on_as_aws_has_them(a_group, ec2, asg, aws):
    group = a_group()
    asg.put_lifecycle_hook(
        AutoScalingGroupName=group.name,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
    )
    aws.control("PUT", "health-check", {"hooksForDeadInstances": True})
    try:
        dead = group.in_service(1)[0]
        ec2.terminate_instances(InstanceIds=[dead])
        eventually(lambda: group.states().get(dead) == "Terminating:Wait")
    finally:
        aws.control("PUT", "health-check", {"hooksForDeadInstances": False})


def test_suspended_processes_stop_launches_and_terminations_until_resumed(a_group, asg):
    group = a_group(desired=1)
    asg.suspend_processes(AutoScalingGroupName=group.name, ScalingProcesses=["Launch", "Terminate", "AZRebalance"])
    shown = {item["ProcessName"] for item in group.describe()["SuspendedProcesses"]}
    assert shown == {"Launch", "Terminate", "AZRebalance"}
    asg.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=2)
    assert len(group.states()) == 1
    asg.resume_processes(AutoScalingGroupName=group.name, ScalingProcesses=["Launch"])
    group.in_service(2)
    asg.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=1)
    assert len(group.states()) == 2
    asg.resume_processes(AutoScalingGroupName=group.name)
    group.in_service(1)


def test_a_group_with_instances_is_only_deleted_by_force(a_group, asg):
    group = a_group()
    assert refused(asg.delete_auto_scaling_group, AutoScalingGroupName=group.name)["Error"]["Code"] == "ResourceInUse"


def test_a_launch_without_capacity_is_reported_in_the_activities_and_tried_again(a_group, aws, asg):
    aws.control("POST", "capacity", {"zone": "us-east-1a"})
    group = a_group(desired=1, zones="a", wait=False)
    failed = eventually(lambda: asg.describe_scaling_activities(AutoScalingGroupName=group.name)["Activities"])[0]
    assert failed["StatusCode"] == "Failed"
    assert "sufficient m5.large capacity" in failed["StatusMessage"]
    aws.control("DELETE", "capacity")
    group.in_service(1)


def test_many_clients_at_once_get_consistent_answers(aws):
    ec2 = aws.client("ec2")
    name = uuid.uuid4().hex[:6]

    def make(number):
        created = ec2.create_launch_template(
            LaunchTemplateName=f"{name}-{number}", LaunchTemplateData={"ImageId": "ami-12c6146b"}
        )
        return created["LaunchTemplate"]["LaunchTemplateId"]

    with ThreadPoolExecutor(16) as pool:
        made = set(pool.map(make, range(48)))
    assert len(made) == 48


def test_a_running_instance_refresh_is_visible(a_group, asg):
    group = a_group()
    asg.start_instance_refresh(AutoScalingGroupName=group.name)
    found = asg.describe_instance_refreshes(AutoScalingGroupName=group.name)["InstanceRefreshes"]
    assert [item["Status"] for item in found] == ["InProgress"]
