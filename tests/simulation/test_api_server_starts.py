"""An API server that has just started answers 403 for seconds: no upgrade and no disruption run ends by it."""

from dataclasses import replace

from simulation.fault_rates import Faults
from tests.simulation.disruption_stand_in import Disrupted
from tests.simulation.upgrade_stand_in import BEGIN, Upgraded

STARTED = replace(Faults.none(), forbidden_seconds=3)
EVERY = 20  # seconds from start to start


def restarting(world):
    """The same world, whose API server starts again and again from the first step on."""
    gate = world.world.injector

    def start():
        gate.api_down_until = world.world.timeline.now()

    for at in range(int(BEGIN), 1500, EVERY):
        world.at(at, start)
    world.run()
    assert gate.counts["Kubernetes 403"] >= 5
    return world


def test_an_upgrade_goes_on():
    world = restarting(Upgraded(faults=STARTED).start(launchTemplateVersion="2"))
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)


def test_a_disruption_run_goes_on():
    world = restarting(Disrupted(faults=STARTED).drifting())
    assert set(world.ends) == {"DisruptionDone"}
    assert world.untouched()
