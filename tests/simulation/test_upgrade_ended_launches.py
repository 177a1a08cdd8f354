"""An instance of the surge that ends before its node joins fails no upgrade; groups whose instances always end fail
with the instance and the reason.
"""

from dataclasses import replace

import pytest

from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet

SPARE_ZONE = "us-east-1d"
SIZES = range(2, 11)


def ends_unhealthy_in_another_zone(world, member):
    """The group replaces it in a zone that no old node is in: the zone of the ended one is left without a new node."""
    group = world.world.fleet.groups[member.group]
    group.plan = replace(group.plan, zones=(*group.plan.zones, SPARE_ZONE))
    world.world.fleet.unhealthy(member)


def ends_unhealthy(world, member):
    world.world.fleet.unhealthy(member)


def ends_with_decrement(world, member):
    """As Cluster Autoscaler does with an instance that does not register."""
    world.world.fleet.terminate(member, decrement=True)


def ends_without_decrement(world, member):
    world.world.fleet.terminate(member, decrement=False)


def is_reclaimed(world, member):
    world.world.fleet.notices.spot_warning(member)


WAYS = (
    ends_unhealthy_in_another_zone,
    ends_unhealthy,
    ends_with_decrement,
    ends_without_decrement,
    is_reclaimed,
)


def launched_ahead(world):
    group = world.world.fleet.groups[GROUP]
    return [member for member in group.members.values() if str(member.version) == "2" and not member.leaving]


def losing_one(size, way, *, seconds=20, number=-1, strategy="DEFAULT"):
    """One launch of the surge ends in its boot."""
    fleet = a_fleet(size, maximum=size, spot=way is is_reclaimed, strategy=strategy)
    world = Upgraded(fleet).start(launchTemplateVersion="2")
    return world.at(BEGIN + seconds, lambda: way(world, launched_ahead(world)[number]))


def sizes_and_versions(world, size):
    return (world.group.desired, world.group.maximum, world.versions) == (size, size, ["2"])


@pytest.mark.parametrize(("way", "size"), [*((way, 2) for way in WAYS), (WAYS[0], 5), (WAYS[2], 5)])
def test_an_upgrade_that_loses_a_launch_in_its_boot_ends_well(way, size):
    world = losing_one(size, way).run(0.4)
    assert world.ended() == "Upgraded", world.why()
    assert sizes_and_versions(world, size)


def test_incremental_launches_again_where_its_launch_ended():
    world = losing_one(3, ends_with_decrement, strategy="INCREMENTAL").run(0.4)
    assert world.ended() == "Upgraded", world.why()
    assert sizes_and_versions(world, 3)


def decremented(size, *, new, seconds):
    """An owner takes one member out with decrement, a new or an old one, so many seconds after the start. `open_then`:
    the launches that were open at that moment, None where there was no such member.
    """
    world = Upgraded(a_fleet(size, maximum=size)).start(launchTemplateVersion="2")
    fleet, world.open_then = world.world.fleet, None

    def take():
        members = [one for one in fleet.groups[GROUP].members.values() if not one.leaving]
        found = [one for one in members if (str(one.version) == "2") is new]
        if found:
            world.open_then = fleet.groups[GROUP].desired - size
            fleet.terminate(found[-1], decrement=True)

    return world.at(BEGIN + seconds, take)


@pytest.mark.parametrize(("new", "seconds"), [(False, 10), (False, 150), (True, 60), (True, 150)])
def test_a_decrement_by_others_takes_an_open_launch_whichever_member_it_names(new, seconds):
    """Also in the last seconds, when each launch has its old node: one more is launched for it."""
    world = decremented(3, new=new, seconds=seconds).run(0.4)
    assert world.ended() == "Upgraded", world.why()
    assert sizes_and_versions(world, 3)


@pytest.mark.long
@pytest.mark.parametrize("seconds", range(10, 200, 10))
@pytest.mark.parametrize("new", [False, True])
def test_a_decrement_by_others_at_any_moment_leaves_the_size_while_the_group_is_larger(new, seconds):
    """Where the last launch is settled before the next turn sees the decrement, the size is the owner's."""
    for size in (2, 5, 9):
        world = decremented(size, new=new, seconds=seconds).run(0.6)
        sizes = {None: {size}, 0: {size - 1}, 1: {size - 1, size}}.get(world.open_then, {size})
        assert world.group.desired in sizes, (size, world.open_then, world.why())


@pytest.mark.long
@pytest.mark.parametrize("seconds", [20, 60, 95])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("way", WAYS)
def test_every_size_of_group_survives_the_loss_of_a_launch(size, way, seconds):
    for number, strategy in ((0, "DEFAULT"), (-1, "DEFAULT"), (-1, "INCREMENTAL")):
        world = losing_one(size, way, seconds=seconds, number=number, strategy=strategy)
        world.start("second", at=BEGIN + 3600, launchTemplateVersion="2").run(hours=1.5)
        assert "Upgraded" in {world.ended(), world.ended("second")}, world.why()
        assert sizes_and_versions(world, size), (number, strategy)


def always_ending(way, size=3):
    """Every new instance ends some seconds after its launch; the trouble is over after eight minutes."""
    world = Upgraded(a_fleet(size, maximum=size)).start(launchTemplateVersion="2")
    seen = set()

    def end_each():
        for member in launched_ahead(world):
            if member.id not in seen:
                seen.add(member.id)
                world.world.timeline.after(15, lambda one=member: one.leaving or way(world, one), "test")

    for turn in range(100):
        world.at(BEGIN + 5 * turn, end_each)
    return world.start("second", at=BEGIN + 900, launchTemplateVersion="2").run(0.6)


@pytest.mark.parametrize("way", [ends_with_decrement, ends_unhealthy])
def test_a_group_whose_instances_always_end_fails_with_the_instance_and_the_reason(way):
    world = always_ending(way)
    assert world.ended() == "NodeCreationFailure"
    said = "user request" if way is ends_with_decrement else "user health-check"
    assert f"taken out of service in response to a {said}" in world.why()
    assert "i-0000000000000" in world.why()
    assert "free addresses" not in world.why()
    assert world.ended("second") == "Upgraded", world.why("second")
    assert sizes_and_versions(world, 3)
