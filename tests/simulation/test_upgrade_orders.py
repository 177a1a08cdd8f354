"""Who goes first and how many together, as the policy and the PodDisruptionBudgets say it (U3, U9, X4)."""

from collections import Counter
from dataclasses import replace

import pytest

from leeward.policy.document import Budget, DisruptionPolicy
from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import GROUP, Upgraded, a_fleet


def rolled(**update):
    """The upgraded world, and the most old nodes that were on their way out at one moment."""
    world, most = Upgraded(a_fleet(**update)), [0]
    look_on = world.world.seen

    def note():
        look_on()
        record = world.world.upgrades.get(GROUP)
        busy = [old for old in record.under_way if drains(world, old)] if record is not None else ()
        most[0] = max(most[0], len(busy))

    world.world.seen = note
    world.start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    return world, most[0]


def drains(world, instance):
    record = world.world.records.get(instance)
    return record is None or "drained" not in record.times


@pytest.mark.parametrize("order", ["random", "zone", "age"])
def test_every_order_replaces_every_node_within_the_limit(order):
    world, most = rolled(order=order, max_unavailable=2)
    assert most <= 2
    assert world.record.finished == 6


def test_a_percentage_lets_that_share_of_the_nodes_go_together():
    free = (deployment("web", 12),)
    _, most = rolled(workloads=free, max_unavailable=None, max_unavailable_percentage=34)
    assert most == 3, "34 % of six, rounded up"


PAIRS = tuple(thing for name in ("a", "b", "c") for thing in (deployment(name, 2), budget(name)))


def test_nodes_whose_pods_share_a_budget_are_not_emptied_together():
    """Three pairs, each over two nodes, of which one pod may be away: three nodes may go at once, no whole pair."""
    world, most = rolled(workloads=PAIRS, max_unavailable=3)
    assert most > 1
    assert world.world.kubernetes.refusals == 0
    assert not world.world.cluster.history.violations()


def test_a_zone_loses_no_more_at_once_than_its_budget_allows():
    """Six nodes in three zones, all of which may go at once but for the budget: one of the first zone's two."""
    fleet = a_fleet(workloads=(deployment("web", 12),), max_unavailable=6)
    one = Budget(nodes=1, percent=False, zone="us-east-1a", reasons=("Upgrade",))
    rules = tuple(replace(each, disruption=DisruptionPolicy(budgets=(one,))) for each in fleet.policies.policies)
    world, most = Upgraded(replace(fleet, policies=replace(fleet.policies, policies=rules))), Counter()

    def note():
        record = world.world.upgrades.get(GROUP)
        busy = [old for old in record.under_way if drains(world, old)] if record is not None else ()
        for zone, count in Counter(world.world.fleet.instances[old].zone for old in busy).items():
            most[zone] = max(most[zone], count)

    world.watch(note).start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    assert most == {"us-east-1a": 1, "us-east-1b": 2, "us-east-1c": 2}
