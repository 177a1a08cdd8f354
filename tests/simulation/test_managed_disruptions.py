"""Disruption runs and replacements in managed node groups: EKS' sizes are never written."""

from random import Random

import pytest

from leeward.disruption.command import MethodName
from leeward.disruption.observation import observe
from leeward.disruption.plan import plan_disruption
from simulation.aws.managed_groups import ManagedGroups
from tests.simulation.disruption_stand_in import CHANGED, DECIDED, GROUP, Disrupted, a_fleet


def managed(maximum):
    """Three nodes of a managed node group, all of which drift before the first decision."""
    world = Disrupted(a_fleet(maximum=maximum))
    parts = world.world
    system, group = parts.system, parts.fleet.groups[GROUP]
    groups = ManagedGroups(
        "blue", parts.cluster, parts.fleet, system.managed_updates, system.templates, parts.timeline, Random(1)
    )
    groups.manage(group, "web", max_unavailable=1, version="1.33")
    parts.labels = groups.labels

    def change():
        version = group.template.add("ami-00000000000000002")
        groups.copies[GROUP][version] = "1"
        group.point_at(version)

    return world.at(CHANGED, change)


def written(world):
    return list(world.world.system.changes.written)


def test_drifted_nodes_of_a_managed_group_with_room_are_replaced_within_its_sizes():
    world = managed(maximum=4).run()
    assert (world.versions, world.launches, written(world)) == (["2"] * 3, 3, [])
    assert world.untouched()


def test_a_managed_group_at_its_max_size_is_no_target_and_no_node_of_it_is_touched():
    world, plans = managed(maximum=3), []
    ports = world.world.system.ports
    world.at(DECIDED + 5, lambda: plans.append(plan_disruption(observe("blue", ports, None)))).run()
    assert (world.versions, world.launches, written(world), world.most) == (["1"] * 3, 0, [], 0)
    why = "its group app can launch nothing now: it is at its MaxSize, which is EKS' own"
    verdicts = [methods[MethodName.DRIFT] for methods in plans[0].verdicts.values()]
    assert [why in verdict.reason for verdict in verdicts] == [True] * 3


@pytest.mark.parametrize("seconds", [5, 14])
def test_a_managed_group_that_fills_up_after_the_decision_is_not_raised_and_the_command_falls(seconds):
    world = managed(maximum=4)
    fleet = world.world.fleet
    world.at(DECIDED + seconds, lambda: fleet.resize(fleet.groups[GROUP], 4)).run()
    assert (written(world), fleet.groups[GROUP].maximum, world.ends[0]) == ([], 4, "DisruptionGivenUp")
    assert world.untouched()
