"""A world at rest for the rules to look at, and a checker that has seen it so."""

import pytest

from simulation.invariants import Checker
from tests.simulation.view_stand_in import World


@pytest.fixture
def world():
    return World()


@pytest.fixture
def checker(world):
    checker = Checker(seed=7)
    assert checker.after_event(world) == []
    return checker
