"""What one hostile namespace may cost a plan of the whole cluster."""

import pytest

from bench.hostile import RATIO, SHAPES, WITHIN, calls_within, ratio
from tests.drawing import drawn

FIRST, *OTHERS = SHAPES


@pytest.mark.parametrize("name", [FIRST, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_a_hostile_namespace_costs_a_plan_three_times_its_time_at_most(name):
    """A quarter of the nodes that `python -m bench hostile` has, so that it takes seconds."""
    assert ratio(name, nodes=20) <= RATIO


@pytest.mark.parametrize("name", drawn(WITHIN, 2))
def test_lists_within_the_limits_cost_a_plan_three_times_its_calls_at_most(name):
    """Calls of functions, which no other load on the machine changes."""
    assert calls_within(name, nodes=10) <= RATIO
