"""EC2's status checks: only running instances that fail one are reported, with the moment when it began."""

from datetime import UTC

from tests.contract.worlds.groups import members, reaches


def test_only_instances_that_fail_a_check_are_reported(predictable_world):
    world = predictable_world
    failing, fine = members(world, world.group(size=2))
    assert not {failing, fine} & world.instances.impaired().keys()
    world.impair(failing)
    reported = world.instances.impaired()
    assert fine not in reported
    assert (reported[failing].instance, reported[failing].checks) == (failing, ("system",))
    assert reported[failing].since.tzinfo is UTC


def test_an_instance_that_ends_is_not_reported_any_more(predictable_world):
    world = predictable_world
    (failing,) = members(world, world.group())
    world.impair(failing)
    world.end(failing)
    reaches(world, failing, "shutting-down")
    assert failing not in world.instances.impaired()
