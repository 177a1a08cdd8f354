"""What one node costs, from counted executions: transitions, calls, requests, and AWS's list prices."""

from collections import Counter

import pytest

from bench.cost import DRAINS, GUESSED_MS
from bench.cost_bill import Bill
from bench.cost_simulated import OF_TERMINATIONS, terminated

HANDLER_MS = dict.fromkeys((*OF_TERMINATIONS, "notifications"), GUESSED_MS)


@pytest.fixture(scope="module")
def bills():
    return {grace: terminated(grace, HANDLER_MS) for grace in DRAINS}


@pytest.mark.parametrize("grace", DRAINS)
def test_a_drained_node_costs_no_more_than_its_target(bills, grace):
    assert bills[grace].dollars <= DRAINS[grace]


def test_a_drain_of_a_minute_takes_few_transitions_and_calls(bills):
    bill = bills[60]
    assert bill.transitions <= 23
    assert (bill.calls["drain"], bill.calls["terminate"]) == (6, 4)


def test_a_drain_fifteen_times_as_long_takes_three_times_as_many_transitions_and_not_more(bills):
    assert bills[900].transitions <= 3.4 * bills[60].transitions


def test_a_slow_pod_is_waited_for_in_pauses_and_not_inside_of_calls(bills):
    """Ten seconds of work in the step that reported it to stop, and glances from then on."""
    more = bills[900].milliseconds["drain"] - bills[60].milliseconds["drain"]
    calls = bills[900].calls["drain"] - bills[60].calls["drain"]
    assert more <= calls * GUESSED_MS + 1000


def test_a_bill_adds_up_what_aws_lists():
    bill = Bill(
        transitions=1000,
        calls=Counter(drain=1_000_000),
        milliseconds=Counter(drain=2000),
        messages=100_000,
        polls=700_000,
        events=1_000_000,
        writes=1_000_000,
        reads=1_000_000,
    )
    assert bill.lines == pytest.approx(
        {"transitions": 0.025, "Lambda": 0.2 + 0.0000133334, "queue": 0.4, "events": 1.0, "table": 1.875 + 0.125}
    )
