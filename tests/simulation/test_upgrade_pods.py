"""Pods that do not leave: the upgrade ends with their names and what holds them, and again with force (U10, U14)."""

from datetime import timedelta

import pytest

from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, Upgraded, a_fleet

HOURS = 3600.0
LONG_ENOUGH = 3.5  # hours until an upgrade whose pods never leave has given up
OVERRIDE = ["PdbNeverAllows", "SeveralPdbs", "ToleratesEverything"]


def another_budget():
    """A second one that selects the same pods."""
    found = budget("web")
    return {**found, "metadata": {**found["metadata"], "name": "other"}}


def started(*workloads, **asked):
    return Upgraded(a_fleet(workloads=workloads)).start(launchTemplateVersion="2", override=OVERRIDE, **asked)


@pytest.fixture(scope="module")
def held():
    """An upgrade that has ended by itself, in some three hours, because a budget never allows an eviction."""
    return started(deployment("web", 8), budget("web", 0)).run(LONG_ENOUGH)


def test_pods_are_given_their_time_and_not_deleted_without_force(held):
    world = held
    assert world.ended() == "PodEvictionFailure"
    assert not world.world.deletions
    held = [record for record in world.world.records.values() if record.blocked_by]
    assert held
    for record in held:
        assert record.times["closed"] - record.times["draining"] >= timedelta(minutes=15)


def test_run_again_with_force_the_pods_are_deleted_once_their_time_is_over():
    world = started(deployment("web", 8), budget("web", 0))
    world.start("again", at=BEGIN + LONG_ENOUGH * HOURS, override=OVERRIDE, force=True).run(2 * LONG_ENOUGH)
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("PodEvictionFailure", "Upgraded", True)
    assert world.world.deletions


def test_it_says_which_budget_holds_which_pod(held):
    it_names("PodDisruptionBudget default/web allows no disruption", held)


def test_it_says_that_several_budgets_hold_a_pod():
    world = started(deployment("web", 8), budget("web"), another_budget()).run(LONG_ENOUGH)
    it_names("several PodDisruptionBudgets select it: default/other, default/web: leave the pod to one budget", world)


def it_names(budgets, world):
    assert world.ended() == "PodEvictionFailure"
    assert "default/web-" in world.why()
    assert budgets in world.record.error
