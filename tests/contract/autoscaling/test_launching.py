"""LaunchInstances as the product calls it: one more in a named subnet, once for each token, never above MaxSize."""

import uuid

from tests.contract.worlds.groups import desired, members, went


def launch(world, group, *, subnet=None, token=None, count=1):
    """Into the group's last subnet unless reported otherwise."""
    where = subnet or world.groups.describe([group])[group].subnets[-1]
    return world.groups.launch(group=group, subnet=where, token=token or uuid.uuid4().hex, count=count)


def test_a_launch_adds_one_instance_in_the_subnet_and_raises_the_desired_size(world):
    group = world.group()
    subnet = world.groups.describe([group])[group].subnets[-1]
    (launched,) = launch(world, group).launched
    assert desired(world, group) == 2
    went(world, launched, "Pending", "InService")
    assert launched in members(world, group)
    assert world.instances.describe([launched])[launched].subnet == subnet


def test_the_same_token_launches_once(world):
    group, token = world.group(), uuid.uuid4().hex
    first, again = launch(world, group, token=token), launch(world, group, token=token)
    assert first.launched == again.launched
    assert (desired(world, group), len(members(world, group))) == (2, 2)


def test_several_come_with_one_call_and_the_same_token_launches_them_once(world):
    group, token = world.group(), uuid.uuid4().hex
    first, again = (launch(world, group, token=token, count=2) for _ in range(2))
    assert len(set(first.launched)) == 2
    assert again.launched == first.launched
    assert (desired(world, group), len(members(world, group))) == (3, 3)


def test_a_token_that_was_used_for_another_number_launches_nothing(world):
    group, token = world.group(), uuid.uuid4().hex
    launch(world, group, token=token, count=2)
    assert launch(world, group, token=token).launched == ()
    assert desired(world, group) == 3


def test_several_that_would_go_above_the_max_size_are_refused_together(world):
    group = world.group(maximum=2)
    refused = launch(world, group, count=2)
    assert (refused.launched, desired(world, group)) == ((), 1)


def test_another_token_launches_another(world):
    group = world.group()
    first, second = launch(world, group), launch(world, group)
    assert first.launched != second.launched
    assert desired(world, group) == 3


def test_a_group_at_its_max_size_launches_nothing(world):
    group = world.group(maximum=1)
    refused = launch(world, group)
    assert refused.launched == ()
    assert refused.reason.startswith("ValidationError")
    assert (desired(world, group), len(members(world, group))) == (1, 1)


def test_a_subnet_that_is_not_the_groups_is_refused(world):
    group = world.group()
    refused = launch(world, group, subnet="subnet-0123456789abcdef0")
    assert refused.launched == ()
    assert refused.reason.startswith("ValidationError")
    assert desired(world, group) == 1
