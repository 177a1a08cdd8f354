"""Another actor changes what the group launches while an upgrade runs: it ends, and no new node is replaced (U4)."""

import pytest

from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet

SIZE = 12


def moved(after, version, **update):
    """An upgrade to version 2 whose group others point at another one."""
    world = Upgraded(a_fleet(size=SIZE, maximum=30, **update)).start(launchTemplateVersion="2")
    world.template.add("ami-00000000000000003")
    return world.at(BEGIN + after, lambda: world.world.fleet.groups[GROUP].point_at(version))


def replaced(world, version):
    """Count the ended instances of a version."""
    return sum(member.gone for member in world.world.fleet.instances.values() if member.version == version)


@pytest.mark.parametrize("strategy", ["DEFAULT", "MINIMAL"])
def test_nodes_of_a_version_that_others_chose_are_not_replaced_over_and_over(strategy):
    world = moved(90, "3", strategy=strategy).run()
    assert world.ended() == "NodeCreationFailure"
    assert "launches lt-app version 3 and not lt-app version 2" in world.why()
    assert replaced(world, "3") == 0
    assert not world.cordoned


@pytest.mark.parametrize("version", ["3", "1"])
def test_started_again_without_a_target_it_rolls_to_what_the_group_launches_now(version):
    world = moved(90, version).start("again", at=BEGIN + 1800).run(2)
    assert (world.ended("again"), world.at_rest(SIZE, versions=(version,))) == ("Upgraded", True)


def test_started_again_with_its_target_it_points_the_group_back():
    world = moved(90, "3").start("again", at=BEGIN + 1800, launchTemplateVersion="2").run(2)
    assert (world.ended("again"), world.at_rest(SIZE)) == ("Upgraded", True)


def test_a_version_that_comes_back_within_minutes_changes_nothing():
    world = moved(90, "3")
    world.at(BEGIN + 150, lambda: world.world.fleet.groups[GROUP].point_at("2")).run()
    assert (world.ended(), world.at_rest(SIZE)) == ("Upgraded", True)


@pytest.mark.parametrize("at", [100, 1800])
def test_an_abort_leaves_the_version_that_others_have_set(at):
    world = moved(90, "3").start("abort", at=BEGIN + at, action="abort").run()
    assert "Aborted" in {world.ended(), world.ended("abort")}, world.why("abort")
    assert (world.group.launch.template.version, world.group.desired, world.cordoned) == ("3", SIZE, [])


def test_an_abort_returns_to_the_version_that_the_owner_had_set_before_the_upgrade():
    world = Upgraded(a_fleet(size=SIZE, maximum=30)).start(launchTemplateVersion="3")
    world.template.add("ami-00000000000000003")
    world.at(BEGIN - 60, lambda: world.world.fleet.groups[GROUP].point_at("2"))
    world.start("abort", at=BEGIN + 150, action="abort").run()
    assert world.ended("abort") == "ControlRequestRecorded"
    assert (world.ended(), world.group.launch.template.version) == ("Aborted", "2")
