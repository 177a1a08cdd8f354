"""The rule about Capacity Blocks finds instances that end with pods whose eviction has not begun."""

import pytest

from simulation.asked import Asked, Kind
from simulation.invariants import Checker, Rule
from tests.simulation.view_stand_in import INSTANCE, World

LATER = 600


def ending(seconds, *, pod=True):
    """A world with one node whose block ends in so many seconds, ten minutes later; `pod`: a pod is left on it."""
    world = World()
    if pod:
        world.pods("web-1")
    world.asked.append(
        Asked(at=world.now, instance=INSTANCE, kind=Kind.BLOCK, key="cr-0", takes=world.now + LATER + seconds)
    )
    world.clock.advance(seconds=LATER)
    return world


def broken(world):
    return [violation.rule for violation in Checker().after_event(world) if violation.rule is Rule.BLOCK]


@pytest.mark.parametrize(("seconds", "found"), [(1, []), (0, [Rule.BLOCK])], ids=["before", "at the end"])
def test_a_pod_that_was_not_evicted_when_ec2_takes_the_instance_is_found(seconds, found):
    assert broken(ending(seconds)) == found


def test_an_empty_node_and_a_world_with_faults_break_nothing():
    assert broken(ending(0, pod=False)) == []
    world = ending(0)
    world.faultless = False
    assert broken(world) == []
