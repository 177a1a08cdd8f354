"""What one hostile namespace may cost a plan of the whole cluster."""

import pytest

from bench.hostile import RATIO, SHAPES, ratio


@pytest.mark.parametrize("name", SHAPES)
def test_a_hostile_namespace_costs_a_plan_three_times_its_time_at_most(name):
    """A quarter of the nodes that `python -m bench hostile` has, so that it takes seconds."""
    assert ratio(name, nodes=20) <= RATIO
