"""Which nodes drain together (docs/designs/upgrade.md; X4, U9)."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from leeward.time_budget import SearchTime, TimeBudget
from leeward.upgrade.waves.model import Limits
from leeward.upgrade.waves.planner import DrainOrder, in_order, next_nodes, plan_waves
from tests.fakes.running_clock import RunningClock
from tests.unit.upgrade.builders import a_wave_node as node
from tests.unit.upgrade.builders import rivals


def waves(*nodes, together=10, allowed=None, replicas=None, order=DrainOrder.WAVES, seed=0, **limits):
    found = plan_waves(nodes, Limits(together=together, **limits), rivals(allowed, replicas), order=order, seed=seed)
    return [set(wave) for wave in found]


def start(*remaining, busy=(), together=10, constraints=None, **limits):
    return set(next_nodes(remaining, busy, Limits(together=together, **limits), constraints or rivals()))


def test_no_nodes_no_waves():
    assert waves() == []


def test_nodes_that_compete_for_nothing_drain_together_up_to_the_limit():
    found = waves(*(node(f"n{n}") for n in range(7)), together=3)
    assert [len(wave) for wave in found] == [3, 3, 1]


def test_pods_of_one_budget_on_the_nodes_of_a_wave_are_no_more_than_it_allows():
    nodes = [node(f"n{n}", budgets={"shop/web": 1}) for n in range(5)]
    assert [len(wave) for wave in waves(*nodes, allowed={"shop/web": 2})] == [2, 2, 1]


def test_a_node_that_holds_more_than_a_budget_allows_drains_without_others_of_that_budget():
    nodes = (node("n1", budgets={"b": 3}), node("n2", budgets={"b": 1}), node("n3"))
    found = waves(*nodes, allowed={"b": 2})
    assert {"n2"} <= next(wave for wave in found if "n1" not in wave)
    assert len(found) == 2


def test_nodes_at_a_budget_that_allows_none_now_come_after_those_that_can_drain():
    nodes = (
        node("n1", budgets={"zero": 1}),
        node("n2"),
        node("n3", budgets={"zero": 1}),
        node("n4", budgets={"nil": 1}),
    )
    found = waves(*nodes, allowed={"zero": 0, "nil": 0})
    assert found[0] == {"n2"}
    assert sorted(map(len, found[1:])) == [1, 2]
    assert not any({"n1", "n3"} <= wave for wave in found)


def test_taking_one_after_the_other_would_need_more_waves_than_there_have_to_be():
    """Each left node competes with every right one but its twin: twin by twin it takes six waves, side by side two."""
    budgets = {f"l{left}-r{right}": 1 for left in range(6) for right in range(6) if left != right}
    nodes = [
        node(f"n{number}{side}", budgets={name: 1 for name in budgets if f"{side}{number}" in name.split("-")})
        for number in range(6)
        for side in "lr"
    ]
    found = waves(*nodes, together=12, allowed=budgets)
    assert sorted(map(sorted, found)) == [[f"n{number}{side}" for number in range(6)] for side in "lr"]
    limits, time = Limits(together=12), SearchTime(TimeBudget.of(RunningClock(), 0))
    in_no_time = plan_waves(nodes, limits, rivals(budgets), time=time)
    assert sorted(name for wave in in_no_time for name in wave) == sorted(one.name for one in nodes)
    assert (len(in_no_time), time.ended) == (6, True)


@pytest.mark.parametrize("seed", [16, 25])
def test_a_node_of_the_budget_that_needs_the_most_turns_starts_first(seed):
    """Its turns follow one another, so they bound the time of all; also where a part of the first wave starts."""
    dice, names = Random(seed), range(8)
    nodes = [node(f"n{n:02}", budgets={f"b{k}": 1 for k in sorted(dice.sample(names, 3))}) for n in range(14)]
    loads = Counter(budget for one in nodes for budget in one.budgets)
    plan = plan_waves(nodes, Limits(together=5), rivals({f"b{k}": 1 for k in names}))
    (first,) = [one for one in nodes if one.name == plan[0][0]]
    assert max(loads[budget] for budget in first.budgets) == max(loads.values())


def test_replicas_of_a_workload_are_never_all_in_one_wave():
    nodes = (node("n1", workloads={"w": 1}), node("n2", workloads={"w": 1}))
    assert len(waves(*nodes, replicas={"w": 2})) == 2
    assert len(waves(*nodes, replicas={"w": 3})) == 1


def test_a_single_replica_and_replicas_that_are_all_on_one_node_cannot_be_kept_apart():
    assert len(waves(node("n1", workloads={"one": 1}), node("n2"))) == 1
    assert len(waves(node("n1", workloads={"w": 3}), node("n2"), replicas={"w": 3})) == 1


def test_nodes_that_failed_before_come_last_in_waves_of_their_own():
    assert waves(node("n1", failed=True), node("n2"), node("n3", failed=True)) == [{"n2"}, {"n1", "n3"}]


def test_a_zones_own_budget_limits_that_zone_alone():
    nodes = [node(f"a{n}", "a") for n in range(4)] + [node(f"b{n}", "b") for n in range(4)]
    found = waves(*nodes, per_zone={"a": 1})
    assert [sum(name.startswith("a") for name in wave) for wave in found] == [1, 1, 1, 1]
    assert len(found[0]) == 5


def test_order_zone_takes_one_zone_after_the_other():
    nodes = [node(f"{zone}{n}", zone) for n in range(3) for zone in "ba"]
    assert waves(*nodes, together=2, order=DrainOrder.ZONE) == [{"a0", "a1"}, {"a2"}, {"b0", "b1"}, {"b2"}]


def test_order_age_takes_the_oldest_first():
    nodes = [node("young", age=1), node("old", age=9), node("middle", age=5)]
    assert waves(*nodes, together=1, order=DrainOrder.AGE) == [{"old"}, {"middle"}, {"young"}]


def test_order_random_follows_the_seed_and_keeps_places_when_others_have_gone():
    nodes = [node(f"n{n}") for n in range(9)]
    limits = Limits(together=1)
    one, same, other = (in_order(nodes, limits, rivals(), order=DrainOrder.RANDOM, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    rest = in_order(one[3:], limits, rivals(), order=DrainOrder.RANDOM, seed=1)
    assert rest == one[3:]


def test_the_scarcest_budget_is_first_and_zones_alternate():
    nodes = [node(f"{zone}{n}", zone) for zone in "ab" for n in range(2)] + [
        node("z", budgets={"b": 1}),
        node("y", budgets={"b": 1}),
    ]
    found = [one.name for one in in_order(nodes, Limits(together=1), rivals({"b": 1}))]
    assert found == ["y", "z", "a0", "b0", "a1", "b1"]


def test_a_settling_node_delays_no_node_and_a_draining_one_counts():
    assert start(node("n1"), node("n2"), busy=(node("b"),), together=2) == {"n1"}
    assert start(node("n1"), node("n2"), together=2) == {"n1", "n2"}
    assert start(node("n1"), busy=(node("b"),), together=1) == set()


def test_a_busy_node_takes_of_a_budget_what_it_still_holds():
    constraints = rivals({"b": 1})
    assert start(node("n1", budgets={"b": 1}), busy=(node("x", budgets={"b": 1}),), constraints=constraints) == set()
    assert start(node("n1", budgets={"b": 1}), busy=(node("x"),), constraints=constraints) == {"n1"}


def test_a_node_with_the_last_serving_replica_waits_while_another_node_drains():
    constraints = rivals(replicas={"w": 2}, serving={"w": 1})
    holder = node("n1", workloads={"w": 1})
    assert start(holder, busy=(node("x"),), constraints=constraints) == set()
    assert start(holder, node("n2"), constraints=constraints) == {"n2"}


def test_when_no_other_node_drains_a_blocked_node_is_tried():
    assert start(node("n1", budgets={"b": 1}), constraints=rivals({"b": 0})) == {"n1"}
    assert start(node("n1", workloads={"w": 1}), constraints=rivals(replicas={"w": 2}, serving={"w": 1})) == {"n1"}


def test_with_one_zone_the_next_zone_waits_for_the_one_that_drains():
    assert start(node("n1", "b"), busy=(node("x", "a"),), one_zone=True) == set()
    assert start(node("n1", "b"), node("n2", "a"), busy=(node("x", "a"),), one_zone=True) == {"n2"}
    foreign = replace(node("x", "a"), by_others=True)
    assert start(node("n1", "b"), busy=(foreign,), one_zone=True) == {"n1"}
    assert start(node("n1", "b"), node("n2", "a"), busy=(foreign, node("y", "b")), one_zone=True) == {"n1"}


@pytest.mark.parametrize("limits", [{"together": 0}, {"per_zone": {"a": 0}}])
def test_a_budget_that_allows_none_now_starts_nothing_and_is_planned_as_one(limits):
    nodes = (node("n1"), node("n2"))
    assert start(*nodes, **limits) == set()
    assert len(waves(*nodes, **limits)) == 2
