"""The table refuses every call for minutes, and EC2 takes a spot instance meanwhile."""

from dataclasses import replace

import pytest

from leeward.errors import ThrottledError
from leeward.model.termination import Outcome
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival, budget, deployment

FIRST = "i-00000000000000001"
FLEET = replace(SMALL, workloads=(deployment(replicas=6), budget(unavailable=6)))
WARNED = 130  # seconds
TABLE = {"claims", "catalog", "upgrades", "disruptions", "pauses", "maxima"}


def story_of(monkeypatch, begins, ends):
    """Run with the table away between two moments, in seconds from the warning; return the world."""
    world = World(1, FLEET, Faults.none(), (Arrival(at_seconds=WARNED, kind="spot_warning"),))
    warned = world.timeline.now() + 180 + WARNED  # the world warms up first
    real = world.injector.before_call

    def refuses(port, method):
        if port in TABLE and warned + begins <= world.timeline.now() < warned + ends:
            raise ThrottledError(f"throttled: {port}.{method}")
        return real(port, method)

    def look():
        node = world.fleet.instances[FIRST].node
        world.left = [pod["metadata"]["name"] for pod in world.cluster.store.pods_on(node)]

    monkeypatch.setattr(world.injector, "before_call", refuses)
    world.timeline.at(warned + 110, look, "test")
    outcome = world.run(0.3, converge=900)
    assert outcome.unexpected == ()
    return world


@pytest.mark.parametrize("begins", [-5, 5, 12], ids=["before the warning", "after the claim", "during the drain"])
def test_every_pod_of_the_node_is_evicted(monkeypatch, begins):
    world = story_of(monkeypatch, begins, 180)
    assert world.left == []
    assert world.records[FIRST].outcome is Outcome.TERMINATED
    assert f"execution {FIRST}-1: SUCCEEDED Terminated" in "\n".join(world.story)
