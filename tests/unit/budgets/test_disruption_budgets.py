from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.budgets.disruption_budgets import allowance, tightest
from leeward.policy.document import Budget, Window
from tests.unit.policy.strategies import budgets as any_budgets

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
OFFICE_HOURS = Window(schedule="0 9 * * mon-fri", duration=timedelta(hours=8))
NIGHT = Window(schedule="0 22 * * *", duration=timedelta(hours=6))
REASONS = ("Empty", "Drifted", "Underutilized", "Expired", "Upgrade", None)


def count(nodes, **rest):
    return Budget(nodes=nodes, percent=False, **rest)


def share(nodes, **rest):
    return Budget(nodes=nodes, percent=True, **rest)


def allowed(*budgets, reason="Empty", zone=None, total=100, disrupting=0, now=NOON):
    return allowance(budgets, reason=reason, zone=zone, total=total, disrupting=disrupting, now=now)


def test_without_budgets_there_is_no_limit():
    assert allowed() is None


@pytest.mark.parametrize(
    ("percent", "total", "nodes"),
    [(10, 100, 10), (10, 101, 11), (10, 1, 1), (33, 10, 4), (0, 50, 0), (100, 7, 7), (10, 0, 0)],
)
def test_shares_are_rounded_up(percent, total, nodes):
    assert allowed(share(percent), total=total) == nodes


def test_a_count_is_a_count_even_when_there_are_fewer_nodes():
    assert allowed(count(5), total=2) == 5


def test_what_is_disrupting_already_is_subtracted_but_never_below_zero():
    assert allowed(count(5), disrupting=3) == 2
    assert allowed(count(5), disrupting=9) == 0


def test_the_tightest_of_all_matching_budgets_counts():
    assert allowed(share(10), count(3), count(7)) == 3


def test_outside_its_window_a_budget_does_not_limit():
    assert allowed(count(0, window=OFFICE_HOURS)) == 0
    assert allowed(count(0, window=NIGHT)) is None
    assert allowed(count(0, window=NIGHT), count(4)) == 4


@pytest.mark.parametrize("reason", ["Empty", "Drifted", "Underutilized", "Expired", None])
def test_a_budget_without_reasons_covers_everything_but_upgrades(reason):
    assert allowed(count(2), reason=reason) == 2


def test_an_upgrade_is_limited_only_by_budgets_that_name_it():
    assert allowed(count(2), reason="Upgrade") is None
    assert allowed(count(2), count(5, reasons=("Upgrade",)), reason="Upgrade") == 5


def test_a_budget_with_reasons_covers_those_alone():
    drift_only = count(1, reasons=("Drifted",))
    assert allowed(drift_only, reason="Drifted") == 1
    assert allowed(drift_only, reason="Empty") is None
    assert allowed(drift_only, reason=None) is None


def test_a_zones_budget_limits_that_zone_with_its_own_numbers():
    budgets = (count(10), share(50, zone="us-east-1a"))
    assert allowed(*budgets, zone="us-east-1a", total=4, disrupting=1) == 1
    assert allowed(*budgets, zone="us-east-1b", total=4) is None
    assert allowed(*budgets, zone=None, total=40, disrupting=1) == 9


def test_an_unlimited_allowance_yields_to_every_number():
    assert tightest([None, 3, 5]) == 3
    assert tightest([None, 0]) == 0
    assert tightest([None, None]) is None
    assert tightest([]) is None


given_numbers = given(
    st.lists(any_budgets(), max_size=5),
    st.sampled_from(REASONS),
    st.none() | st.just("us-east-1a"),
    st.integers(0, 5000),
    st.integers(0, 6000),
    st.integers(-(10**9), 2 * 10**9).map(lambda seconds: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)),
)


@given_numbers
def test_an_allowance_is_never_negative_and_never_more_than_any_matching_budget(
    budgets, reason, zone, total, disrupting, now
):
    together = allowance(budgets, reason=reason, zone=zone, total=total, disrupting=disrupting, now=now)
    alone = [
        allowance([budget], reason=reason, zone=zone, total=total, disrupting=disrupting, now=now) for budget in budgets
    ]
    assert together is None or together >= 0
    assert together == tightest(alone)


@given_numbers
def test_another_node_disrupted_never_allows_more(budgets, reason, zone, total, disrupting, now):
    before = allowance(budgets, reason=reason, zone=zone, total=total, disrupting=disrupting, now=now)
    after = allowance(budgets, reason=reason, zone=zone, total=total, disrupting=disrupting + 1, now=now)
    assert (before is None) == (after is None)
    assert before is None or after in {before - 1, 0}
