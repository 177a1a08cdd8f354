"""Second starts of failed upgrades once all troubles are over."""

from simulation.endings import Ending
from simulation.journal import KEPT
from simulation.second_starts import LOOKS_EVERY, SecondStarts
from tests.simulation.upgrade_stand_in import Upgraded


def test_a_thousand_terminations_between_two_looks_hide_no_upgrade():
    world = Upgraded().world
    world._populate()
    starts = SecondStarts(world)
    starts.begin()
    ending = Ending(began=0, at=0, name="i-1", machine="node-termination", status="", state="", cause="", asked={})
    for _ in range(KEPT + 2):
        world.system.ends.append(ending)
    world.timeline.run_until(world.timeline.now() + LOOKS_EVERY + 1)
    assert not starts.over
