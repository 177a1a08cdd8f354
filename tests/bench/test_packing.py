"""Nodes that new pods take, against the proven optimum; `python -m bench packing` has all 40 fleets."""

import pytest

from bench.packing import WORST, nodes_for, run
from bench.packing_fleets import OPTIMA, fleet, optimum

EACH_KIND = (0, 10, 13, 19)
LATER = OPTIMA.keys() - {1, 2, 3}


def test_new_pods_take_few_more_nodes_than_the_fewest():
    assert run()


@pytest.mark.parametrize("seed", EACH_KIND)
def test_a_fleet_of_each_kind_is_near_its_optimum(seed):
    assert OPTIMA[seed] <= nodes_for(fleet(seed)) <= WORST * OPTIMA[seed]


@pytest.mark.parametrize(
    "seed", [seed if seed in {1, 2, 3} else pytest.param(seed, marks=pytest.mark.long) for seed in OPTIMA]
)
def test_an_optimum_is_proven_as_it_is_recorded(seed):
    assert optimum(fleet(seed)) == OPTIMA[seed]
