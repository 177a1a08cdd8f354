"""Pods that do not leave: the upgrade ends with their names and what holds them, and again with force (U10, U14)."""

from datetime import timedelta

import pytest

from tests.simulation.fleet_stand_in import budget, deployment
from tests.simulation.upgrade_stand_in import BEGIN, Upgraded, a_fleet

HOURS = 3600.0
OVERRIDE = ["PdbNeverAllows", "SeveralPdbs", "ToleratesEverything"]


def another_budget():
    """A second one that selects the same pods."""
    found = budget("web")
    return {**found, "metadata": {**found["metadata"], "name": "other"}}


def started(*workloads, **asked):
    return Upgraded(a_fleet(workloads=workloads)).start(launchTemplateVersion="2", override=OVERRIDE, **asked)


def test_pods_are_given_their_time_and_not_deleted_without_force():
    world = started(deployment("web", 8), budget("web", 0)).run(7)
    assert world.ended() == "PodEvictionFailure"
    assert not world.world.deletions
    held = [record for record in world.world.records.values() if record.blocked_by]
    assert held
    for record in held:
        assert record.times["closed"] - record.times["draining"] >= timedelta(minutes=15)


def test_run_again_with_force_the_pods_are_deleted_once_their_time_is_over():
    world = started(deployment("web", 8), budget("web", 0))
    world.start("again", at=BEGIN + 6 * HOURS, override=OVERRIDE, force=True).run(10)
    assert (world.ended(), world.ended("again"), world.at_rest()) == ("PodEvictionFailure", "Upgraded", True)
    assert world.world.deletions


@pytest.mark.parametrize(
    ("workloads", "said"),
    [
        ((deployment("web", 8), budget("web", 0)), "PodDisruptionBudget default/web allows no disruption"),
        (
            (deployment("web", 8), budget("web"), another_budget()),
            "several PodDisruptionBudgets select it: default/other, default/web: leave the pod to one budget",
        ),
    ],
)
def test_it_says_which_budget_holds_which_pod(workloads, said):
    world = started(*workloads).run(7)
    assert world.ended() == "PodEvictionFailure"
    assert "default/web-" in world.why()
    assert said in world.record.error
