"""`consolidationPolicy: Balanced`: Karpenter's score, and what it lets through."""

from dataclasses import replace

import pytest

from leeward.disruption.balanced import BalancedShare, Totals, disruption_cost, score, totals_of
from leeward.disruption.command import MethodName
from leeward.disruption.plan import plan_disruption, validate
from tests.unit.disruption.fleet import a_fleet, a_policy, rules

BALANCED = rules(consolidation_policy="Balanced", savings_per_hour=0.0, savings_percent=0.0)
CONSOLIDATION = MethodName.CONSOLIDATION
COSTLY = {"controller.kubernetes.io/pod-deletion-cost": "2147483647"}  # as much as ten ordinary pods, which is the most


def plan(fleet):
    return plan_disruption(fleet.snapshot(), only=CONSOLIDATION)


def reason(fleet, node):
    return plan(fleet).verdicts[node][CONSOLIDATION].reason


@pytest.mark.parametrize(
    ("price", "savings", "disruption", "total", "of_all", "value"),
    [
        (9.68, 7.26, 3, 58.08, 80, 3.33),  # an oversized node
        (4.84, 4.84, 4, 58.08, 80, 1.67),  # spare capacity
        (4.84, 2.42, 8, 58.08, 80, 0.42),  # a marginal move
        (4.84, 2.42, 8, 48.40, 80, 0.50),  # in a uniform pool, half the price
        (9.68, 7.26, 3, 580.80, 800, 3.33),  # ten times the pool
        (4.84, 4.84, 4, 58.08, 107, 2.23),  # beside expensive pods (2.24 there: its fractions are rounded)
        (4.84, 4.84, 31, 58.08, 107, 0.29),  # with expensive pods
    ],
)
def test_the_examples_of_karpenters_design_have_its_scores(price, savings, disruption, total, of_all, value):
    totals = Totals(policy="web", price=total, disruption=of_all)
    found = score([BalancedShare(price=price, disruption=disruption, totals=totals)], price, savings)
    assert found.value == pytest.approx(value, abs=0.005)
    assert found.enough is (value >= 0.5)


def test_a_node_costs_one_and_its_pods_never_less():
    assert disruption_cost([]) == 1
    assert disruption_cost([1, 1, -10, 10]) == 13


def test_nodes_without_a_price_are_in_neither_total():
    assert totals_of({"a": 1.0, "b": None}, {"a": 3, "b": 50}, "web") == Totals(policy="web", price=1, disruption=3)


def test_the_lowest_score_of_several_policies_counts():
    """Savings are attributed by the price of each policy's nodes (Karpenter, EvaluateBalancedMove)."""
    light = BalancedShare(price=1.0, disruption=1, totals=Totals(policy="light", price=10, disruption=100))
    heavy = BalancedShare(price=3.0, disruption=60, totals=Totals(policy="heavy", price=30, disruption=100))
    found = score([light, heavy], 4.0, 2.0)
    assert (found.policy, found.value) == ("heavy", pytest.approx((1.5 / 30) / 0.6))


def test_without_a_balanced_policy_or_a_price_there_is_no_score():
    assert score([], 1.0, 1.0) is None
    share = BalancedShare(price=None, disruption=1, totals=Totals(policy="web", price=1, disruption=1))
    assert score([share], None, None) is None


def full(*nodes, policy=BALANCED, **changes):
    """Nodes that each hold so many pods of 200m; the last has space for what others lose."""
    fleet = a_fleet(a_policy(disruption=replace(policy, **changes)))
    for number, pods in enumerate(nodes):
        fleet.node(f"n{number}")
        for pod in range(pods):
            fleet.pod(f"p{number}-{pod}", f"n{number}", cpu="200m", memory="64Mi")
    return fleet


def test_a_node_whose_price_share_is_worth_its_pods_is_removed_and_the_command_says_its_score():
    (command,) = plan(full(2, 6, 8)).commands
    assert command.nodes == ("n0",)
    assert command.score == pytest.approx((1 / 3) / (3 / 19), abs=1e-4)
    assert command.reason.endswith("(score 2.11: 33.3% of the cost of policy web for 15.8% of its disruption)")


def test_pods_that_are_expensive_to_move_keep_a_node_that_saves_as_much():
    fleet = full(2, 6)
    fleet.pod("model", "n0", cpu="200m", memory="64Mi", annotations=COSTLY)
    for pod in range(2):
        fleet.pod(f"model-{pod}", "n0", cpu="200m", memory="64Mi", annotations=COSTLY)
    fleet.node("n2").pod("rest", "n2", cpu="1500m", memory="64Mi", annotations={"leeward.dev/do-not-disrupt": "true"})
    assert reason(fleet, "n0") == (
        "consolidationPolicy Balanced asks for a score of 0.50, at best it is less "
        "(score 0.42: 33.3% of the cost of policy web for 78.6% of its disruption)"
    )
    unscored = full(2, 6, policy=replace(BALANCED, consolidation_policy="WhenEmptyOrUnderutilized"))
    assert plan(unscored).commands


@pytest.mark.parametrize(("pods", "taken"), [(3, True), (8, False)])
def test_a_replacement_that_saves_half_is_worth_few_pods_alone(pods, taken):
    """Beside nine full nodes of $0.12, one of them for $0.09."""
    prices = a_fleet().prices
    prices = replace(prices, on_demand={**prices.on_demand, "medium": 0.09})
    fleet = a_fleet(a_policy(disruption=BALANCED), prices=prices).group("web", "large").group("small", "medium")
    for number in range(10):
        fleet.node(f"n{number}", group="web")
        for pod in range(pods if number == 0 else 8):
            cpu = "200m" if number == 0 else "490m"
            fleet.pod(f"p{number}-{pod}", f"n{number}", cpu=cpu, memory="64Mi")
    found = plan(fleet)
    assert [command.nodes for command in found.commands] == ([("n0",)] if taken else [])
    if not taken:
        said = found.verdicts["n0"][CONSOLIDATION].reason
        assert "consolidationPolicy Balanced asks for a score of 0.50 (score 0.25: 2.5% of the cost" in said


def test_minimum_savings_hold_beside_the_score():
    assert plan(full(2, 6, 8, savings_per_hour=0.1)).commands == ()


def test_an_empty_node_needs_no_score():
    found = plan_disruption(full(0, 6).snapshot())
    assert (found.method, found.commands[0].nodes, found.commands[0].score) == (MethodName.EMPTINESS, ("n0",), None)


def test_a_command_whose_score_has_fallen_is_no_longer_valid():
    fleet = full(2, 6, 8)
    commands = plan(fleet).commands
    for number in range(4):
        fleet.pod(f"new-{number}", "n0", cpu="50m", memory="64Mi", annotations=COSTLY)
    later = validate(fleet.snapshot(), CONSOLIDATION, commands)
    assert later.commands == ()
    assert "Balanced asks for a score" in later.verdicts["n0"][CONSOLIDATION].reason
