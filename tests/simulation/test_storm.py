"""Many warnings at once: nothing is lost, and a rough way there ends where a smooth one does."""

from functools import partial

import pytest

from bench import storm_limits
from bench.storm_chain import Way, storm
from leeward.model.group import AZ_REBALANCE
from leeward.model.termination import CauseKind
from leeward.termination.decisions import SMALLEST_STORM
from simulation.fault_rates import Faults
from simulation.rule import Rule
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival

COUNT = 40
SPOT_DEADLINE = 120  # seconds after the warning


@pytest.fixture(scope="module")
def smooth():
    return storm(COUNT)


def test_every_warned_node_is_tainted_at_once_terminated_and_replaced(smooth):
    end = smooth.end
    assert end.outcomes == {"terminated": COUNT}
    assert (end.desired, end.in_service, end.left_tainted) == (COUNT, COUNT, 0)
    assert smooth.executions == COUNT
    assert smooth.tainted < 5
    assert smooth.violations == ()


def test_no_message_is_lost_and_none_waits(smooth):
    assert (smooth.end.lost, smooth.end.waiting) == (0, 0)


@pytest.mark.parametrize("way", [Way.ROUGH, Way.HARSH])
def test_three_deliveries_of_everything_and_throttling_end_in_the_same_state(smooth, way):
    worse = storm(COUNT, way)
    assert worse.end == smooth.end
    assert worse.violations == ()
    assert worse.tainted < SPOT_DEADLINE
    assert worse.throttled > smooth.throttled == 0  # it was worse indeed


def test_within_the_limits_of_aws_pods_without_a_budget_leave_in_time():
    """Forty of a hundred nodes with ten pods each; Lambda cuts the warnings into five batches of eight. As long as each
    step asked AWS first, hardly a pod was evicted.
    """
    found = storm_limits.measure(storm_limits.Storm(count=COUNT))
    assert found.throttled["autoscaling:DescribeAutoScalingGroups"] > 0  # there were limits
    assert found.pods > 100
    assert (found.evicted, found.lost, found.violations) == (1.0, 0, ())
    assert found.tainted is not None
    assert found.tainted <= storm_limits.TAINTED_WITHIN
    assert found.met
    assert found.launched < SMALLEST_STORM  # before the storm was noticed, and not once more for each batch


@pytest.mark.long
def test_three_hundred_end_as_forty_do():
    smooth, rough = storm(300), storm(300, Way.ROUGH)
    assert smooth.end == rough.end
    assert smooth.end.outcomes == {"terminated": 300}
    assert smooth.violations == rough.violations == ()
    assert rough.tainted < SPOT_DEADLINE


@pytest.mark.parametrize("balanced", [True, False], ids=["AZRebalance", "suspended"])
def test_the_replacement_of_a_warned_node_goes_to_another_zone_unless_a_second_node_would_move(balanced):
    """EC2 has just taken back that type there; ten minutes later the zone with the fewest cores is the best again."""
    again = Arrival(at_seconds=1200, kind="spot_warning")
    world = World(1, SMALL, Faults.none(), (Arrival(at_seconds=60, kind="spot_warning"), again))
    for group in () if balanced else world.groups:
        world.timeline.after(10, partial(world.system.changes.suspend, group, AZ_REBALANCE), "owner")
    broken = {one.rule for one in world.run(1, converge=1800).violations}
    assert broken <= (set() if balanced else {Rule.RESTORED})  # the owner has suspended it
    warned = (record for record in world.records.values() if record.has(CauseKind.SPOT_INTERRUPTION))
    first, second = sorted(warned, key=lambda record: record.times["claimed"])
    (launched,) = first.replacement.launched
    assert (world.fleet.instances[launched].zone == first.subject.zone) is balanced
    if balanced:
        assert "AZRebalance would move a node otherwise" in first.replacement.reason
        return
    assert "EC2 is taking back spot capacity: m5.large in us-east-1a" in first.replacement.reason
    assert "m5.large in us-east-1a" not in second.replacement.reason
