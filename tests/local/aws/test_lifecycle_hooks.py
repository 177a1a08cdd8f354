"""Lifecycle hooks hold instances until every hook is answered, and time decides for those who do not."""

import time

import pytest
from botocore.exceptions import ClientError

from .conftest import eventually

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
LAUNCHING = "autoscaling:EC2_INSTANCE_LAUNCHING"


@pytest.fixture
def put_hook(asg):
    def put(group, name="drain", transition=TERMINATING, timeout=60, result="CONTINUE", **more):
        asg.put_lifecycle_hook(
            AutoScalingGroupName=group.name,
            LifecycleHookName=name,
            LifecycleTransition=transition,
            HeartbeatTimeout=timeout,
            DefaultResult=result,
            **more,
        )

    return put


@pytest.fixture
def answer(asg):
    def complete(group, instance=None, name="drain", result="CONTINUE", **more):
        if instance:
            more["InstanceId"] = instance
        asg.complete_lifecycle_action(
            AutoScalingGroupName=group.name, LifecycleHookName=name, LifecycleActionResult=result, **more
        )

    return complete


def terminate(group, instance, *, decrement=True):
    return group.asg.terminate_instance_in_auto_scaling_group(
        InstanceId=instance, ShouldDecrementDesiredCapacity=decrement
    )["Activity"]


def about(instance, kind):
    """Whether an event is this one: groups of other tests may still be ending."""
    return lambda event: (event["detail-type"], event["detail"].get("EC2InstanceId")) == (kind, instance)


def test_a_terminate_hook_holds_the_instance_and_notifies_every_target(a_group, a_queue, put_hook, answer, asg, aws):
    events, target = a_queue("aws.autoscaling"), a_queue()
    group = a_group()
    put_hook(group, NotificationTargetARN=target.arn, NotificationMetadata="m", RoleARN="arn:aws:iam::0:role/r")
    test = target.event(lambda body: body.get("Event") == "autoscaling:TEST_NOTIFICATION")
    assert test["AutoScalingGroupName"] == group.name
    instance = group.in_service(1)[0]
    activity = terminate(group, instance)
    assert activity["StatusCode"] == "MidLifecycleAction"
    assert group.states() == {instance: "Terminating:Wait"}
    shown = asg.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"][0]
    assert shown["LifecycleState"] == "Terminating:Wait"
    event = events.event(about(instance, "EC2 Instance-terminate Lifecycle Action"))
    raw = target.event(lambda body: "LifecycleTransition" in body)
    detail = dict(event["detail"])
    assert event["resources"] == [group.describe()["AutoScalingGroupARN"]]
    assert {key: raw[key] for key in detail} == detail
    assert (raw["AccountId"], raw["Service"]) == (aws.account, "AWS Auto Scaling")
    assert (detail["Origin"], detail["Destination"]) == ("AutoScalingGroup", "EC2")
    assert (detail["EC2InstanceId"], detail["NotificationMetadata"]) == (instance, "m")
    answer(group, LifecycleActionToken=detail["LifecycleActionToken"])
    group.in_service(0)
    groups_words = [word for word in aws.control("GET", f"journal/{instance}") if not word.islower()]
    assert groups_words[-3:] == ["Terminating:Wait", "Terminating:Proceed", "Terminated"]
    events.event(about(instance, "EC2 Instance Terminate Successful"))


def test_a_topic_can_be_a_hooks_target(a_group, a_queue, put_hook, answer, aws):
    sns, queue = aws.client("sns"), a_queue()
    topic = sns.create_topic(Name="hooks")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue.arn, Attributes={"RawMessageDelivery": "true"})
    group = a_group()
    put_hook(group, NotificationTargetARN=topic)
    instance = group.in_service(1)[0]
    terminate(group, instance)
    assert queue.event(lambda body: body.get("EC2InstanceId") == instance)["LifecycleHookName"] == "drain"
    answer(group, instance)


def test_two_hooks_must_both_be_answered(a_group, put_hook, answer):
    group = a_group()
    put_hook(group, "one")
    put_hook(group, "two")
    instance = group.in_service(1)[0]
    terminate(group, instance)
    answer(group, instance, "one")
    assert group.states() == {instance: "Terminating:Wait"}
    with pytest.raises(ClientError, match=f"No active Lifecycle Action found with instance ID {instance}"):
        answer(group, instance, "one")
    answer(group, instance, "two")
    group.in_service(0)


def test_abandon_ends_the_wait_of_the_other_hooks(a_group, put_hook, answer):
    group = a_group()
    put_hook(group, "one")
    put_hook(group, "two")
    instance = group.in_service(1)[0]
    terminate(group, instance)
    answer(group, instance, "one", "ABANDON")
    group.in_service(0)


def test_a_hook_that_is_not_answered_times_out(a_group, put_hook):
    group = a_group()
    put_hook(group, timeout=4, result="ABANDON")
    instance = group.in_service(1)[0]
    terminate(group, instance)
    assert group.states() == {instance: "Terminating:Wait"}
    group.in_service(0)


def test_heartbeats_hold_the_instance_longer(a_group, put_hook, answer, asg):
    group = a_group()
    put_hook(group, timeout=5)
    instance = group.in_service(1)[0]
    terminate(group, instance)
    for _ in range(3):
        time.sleep(2)
        asg.record_lifecycle_action_heartbeat(
            AutoScalingGroupName=group.name, LifecycleHookName="drain", InstanceId=instance
        )
    assert group.states() == {instance: "Terminating:Wait"}
    answer(group, instance)


def test_scale_in_goes_through_the_hooks(a_group, put_hook, answer, asg):
    group = a_group(desired=2)
    put_hook(group)
    asg.update_auto_scaling_group(AutoScalingGroupName=group.name, MinSize=0, DesiredCapacity=1)
    states = group.states()
    assert sorted(states.values()) == ["InService", "Terminating:Wait"]
    answer(group, next(key for key, state in states.items() if state == "Terminating:Wait"))
    group.in_service(1)


def test_without_decrement_the_replacement_starts_while_the_old_one_waits(a_group, put_hook, answer):
    group = a_group()
    put_hook(group)
    instance = group.in_service(1)[0]
    terminate(group, instance, decrement=False)
    states = eventually(lambda: sorted(group.states().values()) == ["InService", "Terminating:Wait"] and group.states())
    assert states[instance] == "Terminating:Wait"
    answer(group, instance)


def test_a_launch_hook_holds_a_new_instance_until_it_may_serve(a_group, a_queue, put_hook, answer, asg):
    queue = a_queue("aws.autoscaling")
    group = a_group(desired=0)
    put_hook(group, "join", LAUNCHING, result="ABANDON")
    asg.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=1)
    (instance,) = eventually(group.states)
    event = queue.event(about(instance, "EC2 Instance-launch Lifecycle Action"))
    assert (event["detail"]["Origin"], event["detail"]["Destination"]) == ("EC2", "AutoScalingGroup")
    assert group.states() == {instance: "Pending:Wait"}
    answer(group, instance, "join")
    assert group.in_service(1) == [instance]
    queue.event(about(instance, "EC2 Instance Launch Successful"))


def test_an_abandoned_launch_is_terminated_and_another_is_tried(a_group, put_hook, answer, asg):
    group = a_group(desired=0)
    put_hook(group, "join", LAUNCHING, result="ABANDON")
    asg.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=1)
    first = next(iter(group.states()))
    answer(group, first, "join", "ABANDON")
    second = eventually(lambda: [key for key in group.states() if key != first])[0]
    answer(group, second, "join")
    assert group.in_service(1) == [second]


def test_hooks_are_described_updated_and_deleted(a_group, put_hook, asg):
    group = a_group(desired=0)
    put_hook(group, timeout=300, NotificationMetadata="x")
    asg.put_lifecycle_hook(AutoScalingGroupName=group.name, LifecycleHookName="drain", HeartbeatTimeout=30)
    hook = asg.describe_lifecycle_hooks(AutoScalingGroupName=group.name)["LifecycleHooks"][0]
    assert (hook["HeartbeatTimeout"], hook["GlobalTimeout"], hook["NotificationMetadata"]) == (30, 3000, "x")
    assert "NotificationTargetARN" not in hook
    asg.delete_lifecycle_hook(AutoScalingGroupName=group.name, LifecycleHookName="drain")
    assert asg.describe_lifecycle_hooks(AutoScalingGroupName=group.name)["LifecycleHooks"] == []


def test_an_instance_whose_root_volume_is_replaced_is_held_before_and_after_its_reboot(
    a_group, a_queue, put_hook, answer, asg
):
    events = a_queue("aws.autoscaling")
    group = a_group()
    instance = group.in_service(1)[0]
    put_hook(group)
    put_hook(group, name="join", transition=LAUNCHING)

    def state():
        return asg.describe_auto_scaling_instances(InstanceIds=[instance])["AutoScalingInstances"][0]["LifecycleState"]

    asg.start_instance_refresh(AutoScalingGroupName=group.name, Strategy="ReplaceRootVolume")
    held = events.event(about(instance, "EC2 Instance-terminate Lifecycle Action"))["detail"]
    assert (held["Action"], held["Origin"], held["Destination"]) == (
        "ReplaceRootVolume",
        "AutoScalingGroup",
        "AutoScalingGroup",
    )
    assert state() == "ReplacingRootVolume:Wait"
    answer(group, instance)
    back = events.event(about(instance, "EC2 Instance-launch Lifecycle Action"))["detail"]
    assert (back["Action"], state()) == ("ReplaceRootVolume", "Pending:Wait")
    answer(group, instance, name="join")
    eventually(lambda: state() == "InService")
    refreshes = asg.describe_instance_refreshes(AutoScalingGroupName=group.name)["InstanceRefreshes"]
    assert [one["Status"] for one in refreshes] == ["Successful"]
    assert group.in_service(1) == [instance]
