"""A group replaces what it loses: ended by EC2, called unhealthy, or at risk with CapacityRebalance."""

from leeward.model.group import HookResult
from tests.contract.worlds.groups import desired, members, newcomer, put_hook, reaches, went


def test_an_instance_that_ec2_ended_is_replaced(world):
    group = world.group()
    (lost,) = members(world, group)
    world.end(lost)
    fresh = newcomer(world, group, lost)
    went(world, fresh, "Pending", "InService")
    went(world, lost, "Pending", "InService", "Terminating", "Terminated")
    assert desired(world, group) == 1


def test_an_unhealthy_instance_leaves_through_its_hooks_and_is_replaced(world):
    group = world.group()
    put_hook(world, group)
    (sick,) = members(world, group)
    world.call_unhealthy(sick)
    went(world, newcomer(world, group, sick), "Pending", "InService")
    went(world, sick, "Pending", "InService", "Terminating:Wait")
    assert desired(world, group) == 1


def test_a_group_with_capacity_rebalance_launches_first_and_then_ends_the_instance_at_risk(predictable_world):
    world = predictable_world
    group = world.group(rebalance=True)
    put_hook(world, group)
    put_hook(world, group, "prepare", launching=True)  # while it holds the new one, the old one can be inspected
    (risky,) = members(world, group)
    world.recommend_rebalance(risky)
    fresh = newcomer(world, group, risky)
    reaches(world, fresh, "Pending:Wait")
    assert world.groups.lifecycle_of(risky) == (group, "InService")
    assert world.groups.complete(group=group, hook="prepare", instance=fresh, result=HookResult.CONTINUE)
    went(world, fresh, "Pending:Wait", "Pending:Proceed", "InService")
    went(world, risky, "Pending", "InService", "Terminating:Wait")
    assert (members(world, group), desired(world, group)) == ([fresh], 1)


def test_a_group_at_its_max_size_rebalances_all_the_same(predictable_world):
    world = predictable_world
    group = world.group(maximum=1, rebalance=True)
    (risky,) = members(world, group)
    world.recommend_rebalance(risky)
    went(world, newcomer(world, group, risky), "Pending", "InService")
    reaches(world, risky, "Terminated")
    assert desired(world, group) == 1


def test_a_group_without_capacity_rebalance_does_nothing_about_a_recommendation(predictable_world):
    world = predictable_world
    group = world.group()
    (risky,) = members(world, group)
    world.recommend_rebalance(risky)
    world.until(lambda: True, "nothing")
    assert members(world, group) == [risky]
