"""What a world keeps must not grow with its days."""

import pytest

from simulation.fault_rates import Faults
from simulation.timeline import FEWEST
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival

DAY = 86400.0
HOURLY = tuple(Arrival(at_seconds=3600.0 * hour, kind="spot_warning", pick=hour) for hour in range(1, 13 * 24))


def sizes(world):
    machine = world.system.machine
    return {
        "names beyond those closed": len(machine.closed) - machine.closed_ever,
        "open executions": len(machine.executions),
        "records": len(world.records),
        "instances": len(world.fleet.instances),
    }


@pytest.mark.long
def test_after_the_first_week_nothing_that_a_world_keeps_grows_any_more():
    world, by_day = World(1, SMALL, Faults.none(), HOURLY), {}
    for day in (9, 12):
        world.timeline.after(day * DAY, lambda day=day: by_day.update({day: sizes(world)}), "look")
    outcome = world.run(12 * 24 + 1, converge=60)
    assert outcome.executions >= world.system.machine.closed_ever > 250  # each name is taken for 90 days
    assert by_day[12]["names beyond those closed"] == 0
    assert all(by_day[12][name] <= 1.1 * by_day[9][name] + 3 for name in by_day[9])
    assert len(world.timeline._heap) <= 2 * FEWEST  # cancelled time-outs are let go
