"""TerminateInstanceInAutoScalingGroup: with and without decrement, twice, at MinSize, and what EC2 does meanwhile."""

import pytest

from leeward.errors import TerminalError
from leeward.model.group import HookResult
from tests.contract.worlds.groups import desired, members, newcomer, put_hook, reaches, went


def test_an_instance_terminated_with_decrement_is_not_replaced(world):
    group = world.group(size=2)
    leaving, staying = members(world, group)
    assert world.groups.terminate(instance=leaving, decrement=True)
    went(world, leaving, "Pending", "InService", "Terminating", "Terminated")
    assert (members(world, group), desired(world, group)) == ([staying], 1)


def test_an_instance_terminated_without_decrement_is_replaced(world):
    group = world.group()
    (leaving,) = members(world, group)
    assert world.groups.terminate(instance=leaving, decrement=False)
    fresh = newcomer(world, group, leaving)
    went(world, fresh, "Pending", "InService")
    went(world, leaving, "Pending", "InService", "Terminating", "Terminated")
    assert (members(world, group), desired(world, group)) == ([fresh], 1)


def test_a_group_lists_its_instance_until_ec2_has_ended_it(world):
    group = world.group()
    (leaving,) = members(world, group)
    world.groups.terminate(instance=leaving, decrement=True)
    reaches(world, leaving, "Terminated")
    seen = [word for word in world.journal(leaving) if word in {"running", "InService", "terminated", "Terminated"}]
    assert seen[-2:] == ["terminated", "Terminated"]


def test_ec2_runs_an_instance_and_ends_it(world):
    group = world.group()
    (leaving,) = members(world, group)
    world.groups.terminate(instance=leaving, decrement=True)
    reaches(world, leaving, "terminated")
    seen = [word for word in world.journal(leaving) if word.islower()]
    assert [word for word in seen if world.exact or word in {"running", "terminated"}] == (
        ["pending", "running", "shutting-down", "terminated"] if world.exact else ["running", "terminated"]
    )
    assert world.instances.describe([leaving])[leaving].state == "terminated"


def test_an_instance_that_ec2_does_not_know_is_not_described(world):
    group = world.group()
    (there,) = members(world, group)
    assert set(world.instances.describe(["i-0123456789abcdef0", there])) == {there}


def test_an_instance_that_is_leaving_is_not_terminated_again(world):
    group = world.group(size=2)
    put_hook(world, group)
    leaving, _ = members(world, group)
    assert world.groups.terminate(instance=leaving, decrement=True)
    reaches(world, leaving, "Terminating:Wait")
    assert not world.groups.terminate(instance=leaving, decrement=True)
    assert desired(world, group) == 1


def test_an_instance_that_no_group_holds_is_not_terminated(world):
    world.group()
    assert not world.groups.terminate(instance="i-0123456789abcdef0", decrement=False)


def test_a_group_at_its_min_size_refuses_a_decrement_and_replaces_instead(world):
    group = world.group()
    world.keep_at_least(group, 1)
    (held,) = members(world, group)
    with pytest.raises(TerminalError):
        world.groups.terminate(instance=held, decrement=True)
    assert (members(world, group), desired(world, group)) == ([held], 1)
    assert world.groups.terminate(instance=held, decrement=False)
    went(world, newcomer(world, group, held), "Pending", "InService")


def test_a_group_that_is_made_smaller_ends_an_instance_through_its_hooks(world):
    group = world.group(size=2)
    put_hook(world, group)
    before = members(world, group)
    world.resize(group, 1)
    world.until(lambda: len(members(world, group)) == 1, "one is leaving")
    (leaving,) = set(before) - set(members(world, group))
    reaches(world, leaving, "Terminating:Wait")
    assert world.groups.complete(group=group, hook="drain", instance=leaving, result=HookResult.CONTINUE)
    went(world, leaving, "Pending", "InService", "Terminating:Wait", "Terminating:Proceed", "Terminated")


def test_a_group_that_is_made_larger_launches(world):
    group = world.group()
    (old,) = members(world, group)
    world.resize(group, 2)
    went(world, newcomer(world, group, old), "Pending", "InService")
