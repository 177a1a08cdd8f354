"""A spot instance whose pods cannot leave: released in time, never returned to service before EC2 takes it."""

from dataclasses import replace

from leeward.model.termination import Outcome, Status
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival, budget, deployment, policies

FIRST = "i-00000000000000001"
BLOCKED = replace(SMALL, workloads=(deployment(), budget(unavailable=0)), policies=policies(timeout=150))
WARNING = Arrival(at_seconds=130, kind="spot_warning")


def after(*arrivals):
    world = World(1, BLOCKED, Faults.none(), arrivals)
    outcome = world.run(0.2, converge=900)
    assert (outcome.violations, outcome.unexpected) == ((), ())
    return world


def test_its_hook_is_answered_before_ec2_takes_it():
    world = after(WARNING)
    taken = next(line for line in world.story if f"{FIRST} of spot is ended" in line)
    answered = next(line for line in world.story if "answered leeward-terminate" in line)
    assert answered < taken
    assert world.records[FIRST].outcome is Outcome.TERMINATED


def test_a_warning_that_joins_a_blocked_drain_keeps_the_node_from_being_returned():
    world = after(Arrival(at_seconds=60, kind="rebalance"), WARNING)
    record = world.records[FIRST]
    assert (record.status, record.outcome, record.attempt) == (Status.CLOSED, Outcome.TERMINATED, 1)
    assert not any("returned-to-service" in line for line in world.story)
    assert world.groups["spot"].desired == 3
