"""Upgrades of several groups at one time, under one policy: a budget that names Upgrade is the policy's (X9)."""

from dataclasses import replace

import pytest

from leeward.policy.document import Budget, DisruptionPolicy
from simulation.convergence import is_tainted
from simulation.fault_rates import Faults
from tests.simulation.fleet_stand_in import Fleet, GroupPlan, budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, Upgraded, updating

NAMES = ("app", "other")
ONE = Budget(nodes=1, percent=False, reasons=("Upgrade",))
QUARTER = Budget(nodes=25, percent=True, reasons=("Upgrade",))


def side_by_side(shared, faults=None, seed=1):
    """Two groups of three nodes, upgraded at one time three at once. `most`: nodes that were tainted and held pods."""
    written = updating(max_unavailable=3)
    rules = DisruptionPolicy(budgets=(shared,) if shared else (), consolidation_policy="Never")
    policies = replace(written, policies=tuple(replace(one, disruption=rules) for one in written.policies))
    plans = tuple(GroupPlan(name=name, spot=False, size=3, maximum=3) for name in NAMES)
    workloads = tuple(made for name in "abcdefghi" for made in (deployment(name, 2), budget(name)))
    world = Upgraded(Fleet(groups=plans, workloads=workloads, policies=policies), faults, seed)
    world.world.fleet.groups["other"].template.add("ami-00000000000000002")
    seen = []

    def look():
        store = world.world.cluster.store
        tainted = [node for node in store.each("nodes") if is_tainted(node)]
        seen.append(sum(any(map(bool, store.pods_on(node["metadata"]["name"]))) for node in tainted))

    for name in NAMES:
        asked = {"group": name, "launchTemplateVersion": "2"}
        world.at(BEGIN, lambda name=name, asked=asked: world.machine.start(name, asked))
    return world.watch(look).run(2), seen


def replaced(world):
    return [world.ended(name) for name in NAMES] == ["Upgraded", "Upgraded"]


def beside(world):
    """Whether one began before the other had ended."""
    one, two = (world.world.upgrades[name] for name in NAMES)
    return max(one.began, two.began) < min(one.ended, two.ended)


def test_two_upgrades_take_no_more_than_the_one_node_that_their_budget_allows():
    world, seen = side_by_side(ONE)
    assert (replaced(world), beside(world), max(seen)) == (True, True, 1)


def test_without_such_a_budget_each_takes_what_its_maximum_allows():
    world, seen = side_by_side(None)
    assert replaced(world)
    assert max(seen) > 3


def test_a_share_is_of_all_nodes_of_the_policy():
    world, seen = side_by_side(QUARTER)
    assert (replaced(world), max(seen)) == (True, 3), "of twelve, six old and six new; of one group's it would be two"


@pytest.mark.parametrize("seed", range(1, 7))
def test_two_that_decide_at_one_moment_keep_to_it_as_well(seed):
    world, seen = side_by_side(ONE, Faults(slow_call=0.5), seed)
    assert (replaced(world), max(seen)) == (True, 1)
