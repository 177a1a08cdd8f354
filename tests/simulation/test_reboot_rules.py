"""The rules about reboots find nodes that are rebooted too often, undrained, or in an outage."""

import pytest

from local.cluster.nodes import NodeSpec
from simulation.aws.reboots import Requested
from simulation.hosts import fail
from simulation.invariants import Checker, Rule
from simulation.reboot_rules import waits_for_others
from tests.fakes.builders import GROUP, a_group
from tests.simulation.view_stand_in import INSTANCE, World

RULES = {Rule.REBOOTS, Rule.REBOOT_DRAINED, Rule.REBOOT_BREAKER}
HOUR = 3600.0


def broken(world):
    return [violation.rule for violation in Checker().after_event(world) if violation.rule in RULES]


def rebooted(world, *hours_ago):
    world.reboots += [Requested(instance=INSTANCE, at=world.now - ago * HOUR) for ago in hours_ago]
    return world


@pytest.mark.parametrize(
    ("hours_ago", "found"),
    [((3, 0), []), ((24, 3, 0), []), ((23.9, 3, 0), [Rule.REBOOTS])],
    ids=["twice", "a third a day later", "a third within the day"],
)
def test_a_third_reboot_within_a_day_is_found(hours_ago, found):
    assert broken(rebooted(World(), *hours_ago)) == found


def test_a_pod_that_could_leave_is_found_on_a_node_that_is_rebooted():
    world = World()
    world.pods("web-1")
    assert broken(rebooted(world, 0)) == [Rule.REBOOT_DRAINED]


def in_an_outage(seconds, ill=3):
    """Ten nodes, so many of which have a condition for so long."""
    world = World()
    names = [f"i-{number}" for number in range(9)]
    world.groups[GROUP] = a_group(GROUP, INSTANCE, *names)
    for name in names:
        world.cluster.add_node(NodeSpec(name=f"node-{name}", instance_id=name))
    for name in names[:ill]:
        fail(world.cluster, f"node-{name}", "AcceleratedHardwareReady")
    world.clock.advance(seconds=seconds)
    return rebooted(world, 0)


def test_a_reboot_while_more_nodes_are_unhealthy_than_the_policy_allows_is_found():
    assert broken(in_an_outage(91)) == [Rule.REBOOT_BREAKER] * 2  # of the cluster, and of the zone


def test_nodes_that_failed_a_moment_ago_or_that_the_policy_allows_break_nothing():
    assert broken(in_an_outage(60)) == []
    assert broken(in_an_outage(600, ill=2)) == []


def test_a_node_that_did_not_come_back_from_its_reboot_may_wait_in_an_outage_and_in_none_else():
    assert waits_for_others(INSTANCE, in_an_outage(91))
    assert not waits_for_others(INSTANCE, in_an_outage(91, ill=2))
    assert not waits_for_others("i-8", in_an_outage(91)), "it was not rebooted"
