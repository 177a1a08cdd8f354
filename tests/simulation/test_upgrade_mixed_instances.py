"""Groups with a mixed instances policy: the template changes, overrides and everything else stay (U2)."""

from leeward.model.launch import Override
from tests.simulation.upgrade_stand_in import GROUP, Upgraded, a_fleet

TYPES = (Override(instance_type="m5.large"), Override(instance_type="m5a.large"))


def mixed():
    world = Upgraded(a_fleet(max_unavailable=2))
    world.world.fleet.groups[GROUP].overrides = TYPES
    return world


def test_it_is_rolled_to_the_new_version_and_keeps_its_overrides():
    world = mixed().start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert world.group.launch.overrides == TYPES
    assert {member.type for member in world.group.instances} == {"m5.large", "m5a.large"}


def test_a_version_with_an_image_is_made_for_it():
    world = mixed().start(ami="ami-00000000000000009").run()
    assert (world.ended(), world.at_rest(versions=("3",))) == ("Upgraded", True)
    assert world.group.launch.overrides == TYPES


def test_a_rollback_gives_the_policy_its_version_back():
    world = mixed().start(launchTemplateVersion="2").start("back", at=3600, action="rollback").run(2)
    assert world.ended("back") == "RolledBack"
    assert (world.at_rest(versions=("1",)), world.group.launch.overrides) == (True, TYPES)
