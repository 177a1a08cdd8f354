"""What upgrades change about a group: its template version, its sizes, its processes."""

import uuid
from datetime import UTC, datetime

import pytest

from leeward.errors import ObjectGoneError
from leeward.model.launch import LaunchTemplateRef
from tests.contract.worlds.groups import desired, members, newcomer

EVER = datetime(2000, 1, 1, tzinfo=UTC)
OTHER_IMAGE = "ami-03cf127a"


def described(world, group):
    return world.groups.describe([group])[group]


def own_version(world, group):
    return world.templates.numbered(described(world, group).launch.template)


def new_version(world, group):
    return world.templates.version_for(own_version(world, group), OTHER_IMAGE, token=uuid.uuid4().hex)


def version_of(world, group, instance):
    (found,) = [one for one in described(world, group).instances if one.id == instance]
    return found.template.version


def test_a_new_version_follows_the_old_one_and_the_same_token_gives_it_again(world):
    group = world.group()
    old, token = own_version(world, group), uuid.uuid4().hex
    new = world.templates.version_for(old, OTHER_IMAGE, token=token)
    assert (new.id, int(new.version)) == (old.id, int(old.version) + 1)
    assert world.templates.version_for(old, OTHER_IMAGE, token=token) == new
    assert world.templates.version_for(new, OTHER_IMAGE, token="another") == new
    latest = LaunchTemplateRef(id=new.id, name=new.name, version="$Latest")
    assert world.templates.numbered(latest) == new


def test_versions_and_groups_that_are_not_there_are_gone(world):
    group = world.group()
    template = own_version(world, group)
    with pytest.raises(ObjectGoneError):
        world.templates.numbered(LaunchTemplateRef(id=template.id, version="99"))
    with pytest.raises(ObjectGoneError):
        world.templates.numbered(LaunchTemplateRef(name="no-such-template", version="1"))
    for change in (
        lambda: world.changes.raise_to("no-such-group", desired=1),
        lambda: world.changes.put_back_maximum("no-such-group", 1),
        lambda: world.changes.suspend("no-such-group", "Launch"),
        lambda: world.changes.resume("no-such-group", "Launch"),
    ):
        with pytest.raises(ObjectGoneError):
            change()


def test_what_comes_after_the_change_is_of_the_new_version_and_what_was_there_stays(world):
    group = world.group(size=2)
    stays, goes = members(world, group)
    old, new = own_version(world, group), new_version(world, group)
    world.changes.point_at(described(world, group), new)
    world.changes.point_at(described(world, group), new)
    assert described(world, group).launch.template == new
    (launched,) = world.groups.launch(
        group=group, subnet=described(world, group).subnets[0], token=uuid.uuid4().hex
    ).launched
    world.groups.terminate(instance=goes, decrement=False)
    refill = newcomer(world, group, stays, goes, launched)
    found = [version_of(world, group, one) for one in (stays, launched, refill)]
    assert found == [old.version, new.version, new.version]


def test_a_raised_size_is_launched_and_says_who_asked(world):
    group = world.group(size=1)
    known = members(world, group)
    world.changes.raise_to(group, desired=2, maximum=5)
    newcomer(world, group, *known)
    assert (described(world, group).desired, described(world, group).maximum) == (2, 5)
    cause = world.groups.activities(group, EVER)[0].cause
    assert "a user request update of AutoScalingGroup constraints to min: 0, max: 5, desired: 2" in cause
    assert "changing the desired capacity from 1 to 2" in cause
    assert "increasing the capacity from 1 to 2" in cause


def test_a_size_that_others_have_set_since_it_was_read_stays_theirs(world):
    group = world.group(size=2)
    assert not world.changes.raise_to(group, desired=4, maximum=4, only_from=3)
    assert (described(world, group).desired, described(world, group).maximum) == (2, 4)
    assert world.changes.raise_to(group, desired=3, maximum=4, only_from=2)
    assert described(world, group).desired == 3


def test_no_size_is_lowered_and_the_maximum_comes_back_only_above_the_desired_size(world):
    group = world.group(size=2)
    world.changes.raise_to(group, desired=1, maximum=1)
    assert (described(world, group).desired, described(world, group).maximum) == (2, 4)
    assert not world.changes.put_back_maximum(group, 1)
    assert described(world, group).maximum == 4
    assert not world.changes.put_back_maximum(group, 1, partly=True)
    assert (described(world, group).desired, described(world, group).maximum) == (2, 2)
    assert world.changes.put_back_maximum(group, 2)
    assert world.changes.put_back_maximum(group, 3)
    assert (described(world, group).desired, described(world, group).maximum) == (2, 2)


def test_nothing_is_launched_while_launch_is_suspended(world):
    group = world.group(size=1)
    (goes,) = members(world, group)
    world.changes.suspend(group, "Launch")
    world.changes.suspend(group, "Launch")
    assert described(world, group).suspended == ("Launch",)
    refused = world.groups.launch(group=group, subnet=described(world, group).subnets[0], token=uuid.uuid4().hex)
    assert (refused.launched, desired(world, group)) == ((), 1)
    world.groups.terminate(instance=goes, decrement=False)
    world.until(lambda: not described(world, group).instances, "the group is empty")
    world.changes.resume(group, "Launch")
    world.changes.resume(group, "Launch")
    newcomer(world, group, goes)
    assert described(world, group).suspended == ()


def test_no_instance_leaves_a_group_that_is_too_large_while_terminate_is_suspended(world):
    group = world.group(size=2)
    world.changes.suspend(group, "Terminate")
    world.resize(group, 1)
    known = members(world, group)
    assert len(known) == 2
    world.changes.resume(group, "Terminate")
    world.until(lambda: len(members(world, group)) == 1, "one leaves")


def test_zones_are_balanced_unless_that_is_suspended(predictable_world):
    world = predictable_world
    group = world.group(size=0)
    subnet = described(world, group).subnets[0]
    for token in "ab":
        world.groups.launch(group=group, subnet=subnet, token=token)
    in_service = lambda: [one.lifecycle for one in described(world, group).instances] == ["InService"] * 2  # noqa: E731
    world.until(in_service, "both in service")
    before = members(world, group)
    world.changes.suspend(group, "AZRebalance")
    world.balance()
    assert members(world, group) == before
    world.changes.resume(group, "AZRebalance")
    world.balance()
    zones = lambda: {one.zone for one in described(world, group).instances if one.lifecycle == "InService"}  # noqa: E731
    world.until(lambda: len(members(world, group)) == 2 and len(zones()) == 2, "one in each zone")
    assert desired(world, group) == 2
