"""What EventBridge hears of an instance: which events, in which order, with which words in them."""

from leeward.model.group import HookResult
from tests.contract.worlds.groups import members, newcomer, put_hook, reaches

LAUNCH, TERMINATE = "EC2 Instance-launch Lifecycle Action", "EC2 Instance-terminate Lifecycle Action"


def words(event):
    """What distinguishes one event from another."""
    detail = event["detail"]
    return detail["state"] if "state" in detail else (event["detail-type"], detail["LifecycleHookName"])


def heard(world, instance, count):
    """The first events about the instance, once there are so many."""
    return world.until(
        lambda: len(found := world.reported(instance)) >= count and found, f"{count} events about {instance}"
    )


def test_a_termination_through_a_hook_is_reported_in_order(world):
    group = world.group()
    put_hook(world, group)
    (instance,) = members(world, group)
    world.groups.terminate(instance=instance, decrement=True)
    reaches(world, instance, "Terminating:Wait")
    world.groups.complete(group=group, hook="drain", instance=instance, result=HookResult.CONTINUE)
    reported = [words(event) for event in heard(world, instance, 3)]
    assert reported == [(TERMINATE, "drain"), "shutting-down", "terminated"]


def test_each_hook_shows_its_own_wait(world):
    group = world.group()
    for hook in ("first", "second"):
        put_hook(world, group, hook)
    (instance,) = members(world, group)
    world.groups.terminate(instance=instance, decrement=True)
    reported = heard(world, instance, 2)
    assert {words(event) for event in reported} == {(TERMINATE, "first"), (TERMINATE, "second")}
    assert len({event["detail"]["LifecycleActionToken"] for event in reported}) == 2


def test_an_instance_that_ec2_ends_is_reported_without_a_word_of_its_group(world):
    group = world.group()
    (instance,) = members(world, group)
    world.end(instance)
    assert [words(event) for event in heard(world, instance, 2)] == ["shutting-down", "terminated"]


def test_a_terminate_hooks_event_says_what_waits_and_where_it_goes(world):
    group = world.group()
    put_hook(world, group)
    (instance,) = members(world, group)
    world.groups.terminate(instance=instance, decrement=True)
    (event,) = heard(world, instance, 1)
    token = event["detail"].pop("LifecycleActionToken")
    assert token
    assert (event["source"], event["version"]) == ("aws.autoscaling", "0")
    assert event["detail"] == {
        "AutoScalingGroupName": group,
        "LifecycleHookName": "drain",
        "EC2InstanceId": instance,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "NotificationMetadata": "leeward",
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }


def test_a_launch_hooks_event_goes_the_other_way(world):
    group = world.group()
    put_hook(world, group, "prepare", launching=True)
    (old,) = members(world, group)
    world.resize(group, 2)
    fresh = newcomer(world, group, old)
    (event,) = heard(world, fresh, 1)
    detail = event["detail"]
    assert words(event) == (LAUNCH, "prepare")
    assert (detail["Origin"], detail["Destination"]) == ("EC2", "AutoScalingGroup")
    assert detail["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_LAUNCHING"
