"""DescribeScalingActivities: why each instance left, and whether the group shrank by it."""

import re
from datetime import UTC, datetime

from tests.contract.worlds.groups import members, newcomer, reaches

EVER = datetime(2000, 1, 1, tzinfo=UTC)
SHRUNK = re.compile(r"shrinking the capacity from (\d+) to (\d+)")


def departure(world, group, instance):
    """The one activity that took the instance out: its cause, and the sizes that it names."""
    (found,) = [activity for activity in world.groups.activities(group, EVER) if activity.leaves == instance]
    named = SHRUNK.search(found.cause)
    return found.cause, (int(named[1]), int(named[2])) if named else None


def test_a_decrement_asked_for_says_who_left_and_that_the_group_shrank(world):
    group = world.group(size=2)
    leaving, _ = members(world, group)
    world.groups.terminate(instance=leaving, decrement=True)
    cause, sizes = departure(world, group, leaving)
    assert f"instance {leaving} was taken out of service in response to a user request" in cause
    assert sizes == (2, 1)


def test_a_termination_without_decrement_shrinks_nothing(world):
    group = world.group()
    (leaving,) = members(world, group)
    world.groups.terminate(instance=leaving, decrement=False)
    cause, sizes = departure(world, group, leaving)
    assert f"instance {leaving} was taken out of service in response to a user request" in cause
    assert sizes is None


def test_a_smaller_desired_size_says_so_and_shrinks_the_group(world):
    group = world.group(size=2)
    before = members(world, group)
    world.resize(group, 1)
    world.until(lambda: len(members(world, group)) == 1, "one is leaving")
    (leaving,) = set(before) - set(members(world, group))
    cause, sizes = departure(world, group, leaving)
    assert "in response to a difference between desired and actual capacity" in cause
    assert "changing the desired capacity from 2 to 1" in cause
    assert sizes == (2, 1)


def test_an_instance_that_ec2_ended_leaves_after_a_health_check_and_shrinks_nothing(world):
    group = world.group()
    (lost,) = members(world, group)
    world.end(lost)
    newcomer(world, group, lost)
    reaches(world, lost, "Terminated")
    cause, sizes = departure(world, group, lost)
    assert "in response to an EC2 health check" in cause
    assert sizes is None


def test_an_unhealthy_instance_leaves_after_a_users_health_check(world):
    group = world.group()
    (sick,) = members(world, group)
    world.call_unhealthy(sick)
    newcomer(world, group, sick)
    cause, sizes = departure(world, group, sick)
    assert "in response to a user health-check" in cause
    assert sizes is None


def test_a_rebalanced_instance_leaves_for_the_recommendation(predictable_world):
    world = predictable_world
    group = world.group(rebalance=True)
    (risky,) = members(world, group)
    world.recommend_rebalance(risky)
    reaches(world, risky, "Terminated")
    cause, sizes = departure(world, group, risky)
    assert "rebalance recommendation" in cause
    assert sizes is None


def test_activities_are_listed_newest_first(world):
    group = world.group(size=2)
    first, second = members(world, group)
    world.groups.terminate(instance=first, decrement=True)
    reaches(world, first, "Terminated")
    world.groups.terminate(instance=second, decrement=True)
    left = [one.leaves for one in world.groups.activities(group, EVER) if one.leaves in {first, second}]
    assert left == [second, first]
