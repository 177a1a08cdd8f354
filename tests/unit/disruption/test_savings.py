"""The least savings of a command over nodes of several policies."""

import pytest

from leeward.disruption.candidates import candidates
from leeward.disruption.savings import reason_not_worth, threshold
from tests.unit.disruption.fleet import a_fleet, a_policy, rules


def of_two(first, second):
    """A node of each policy, $0.06 an hour each."""
    mild, strict = a_policy("a", "a", disruption=rules(**first)), a_policy("b", "b", disruption=rules(**second))
    fleet = a_fleet(mild, strict).node("n1", group="a").node("n2", group="b").pod("p", "n1").pod("q", "n2")
    found, _ = candidates(fleet.snapshot())
    return [found["n1"], found["n2"]]


@pytest.mark.parametrize(
    ("mild", "strict", "least"),
    [
        ({"savings_per_hour": 0.01, "savings_percent": 0}, {"savings_per_hour": 0.05, "savings_percent": 0}, 0.05),
        ({"savings_per_hour": 0, "savings_percent": 5}, {"savings_per_hour": 0, "savings_percent": 50}, 0.06),
        ({"savings_per_hour": 0.07, "savings_percent": 0}, {"savings_per_hour": 0, "savings_percent": 50}, 0.07),
    ],
    ids=["per hour", "percent", "one of each"],
)
def test_the_strictest_minimum_of_the_policies_counts_in_any_order(mild, strict, least):
    for nodes in (of_two(mild, strict), of_two(strict, mild)):
        assert threshold(nodes) == pytest.approx(least)
        assert "minimumSavings asks for" in reason_not_worth(nodes, 0.12 - least + 0.001)
        assert reason_not_worth(nodes, 0.12 - least - 0.001) == ""
