"""EC2 state changes of the whole account have a queue of their own: a spot warning does not wait behind them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf

from leeward.model.termination import CauseKind
from simulation.aws import events
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival

OTHERS = 20_000
WARNED_AT = 60.0


def claimed_after(before: Callable[[World], None] = lambda _: None) -> float:
    """Seconds from a spot warning until its instance is claimed; infinite where that never happens."""
    world = World(1, SMALL, Faults.none(), (Arrival(at_seconds=WARNED_AT, kind="spot_warning"),))
    warnings = list[float]()
    emit = world.bus.emit

    def noted(event):
        if event["detail-type"] == "EC2 Spot Instance Interruption Warning":
            before(world)
            warnings.append(world.timeline.now())
        emit(event)

    world.bus.emit = noted
    world.run(0.1, converge=1800)
    claimed = (one.times["claimed"] for one in world.records.values() if one.has(CauseKind.SPOT_INTERRUPTION))
    return min((moment.timestamp() - warnings[0] for moment in claimed), default=inf)


def others_stop(world: World, send: Callable[[str], None]) -> None:
    """Instances of others in the account, all in the same second."""
    at = datetime.fromtimestamp(world.timeline.now(), UTC)
    for number in range(OTHERS):
        send(json.dumps(events.state_change(f"e-{number}", f"i-f{number:016x}", "stopping", at)))


def test_a_warning_is_claimed_as_soon_while_twenty_thousand_state_changes_wait():
    def in_their_queue(world: World) -> None:
        others_stop(world, world.bus.send_state_change)
        assert (world.state_changes.depth, world.queue.depth) == (OTHERS, 0)

    assert claimed_after(in_their_queue) <= claimed_after() + 5


def test_in_the_queue_of_the_warnings_they_would_delay_it():
    """What the second queue is for: the same messages in front of the warning."""
    assert claimed_after(lambda world: others_stop(world, world.queue.send)) > claimed_after() + 5


def test_the_bus_sends_state_changes_to_their_own_queue():
    world = World(1, SMALL, Faults.none(), (Arrival(at_seconds=WARNED_AT, kind="spot_warning"),))
    world.run(0.1, converge=1800)
    bodies = {message: json.loads(body)["detail-type"] for message, body in world.queue.acknowledged}
    apart = {message.startswith("s-"): kind for message, kind in bodies.items() if "State-change" in kind}
    assert apart == {True: "EC2 Instance State-change Notification"}
