"""Worlds with a second cluster, beside the first or in another account and Region."""

from simulation.case import Case
from simulation.fault_rates import Faults


def a_world_of_two(feature, *others, seed=3, faults=None, arrivals=(), **given):
    """Return a world in which no function has run; without faults and arrivals unless they are given."""
    names = tuple(one.value for one in (feature, *others))
    return Case(
        seed=seed,
        hours=1,
        per_hour=30,
        nodes=6,
        features=names,
        faults=faults or Faults.none(),
        arrivals=arrivals,
        **given,
    ).world()
