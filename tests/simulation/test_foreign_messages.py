"""A hundred thousand messages of other teams in the account, and one spot warning: it does not wait behind them."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import inf

from bench.storm_chain import first_taints
from leeward.model.group import LAUNCHING, TERMINATING, LifecycleHook
from leeward.model.termination import CauseKind
from simulation.aws import events
from simulation.aws.queue import Consumer, Queued
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival

MESSAGES, GROUPS = 100_000, 500
WITHIN = 5.0  # seconds, from the warning until its node is claimed and tainted
WARNED_AT = 60.0
HOURS = 0.025  # half a minute after the warning it is over
# Seconds of fn interruption, whose 512 MB have 0.29 of a core: 0.08 ms of a core for a message about an instance of
# others (measured, hook events), 7.7 ms for one of ours (docs/benchmarks.md); the median of a call of AWS is below 0.3.
OF_OTHERS, OF_OURS = 0.08e-3 / 0.29, 7.7e-3 / 0.29
CALLS, CALL_SECONDS = 3, 0.3  # records, instances and groups, for each batch


def takes_time(world: World, consumer: Consumer) -> Consumer:
    """The consumer, after the time that such a batch takes."""

    def handle(batch: Sequence[Queued]) -> Sequence[str]:
        ours = sum("i-f" not in message.body for message in batch)
        world.invocations.sleep(CALLS * CALL_SECONDS + ours * OF_OURS + (len(batch) - ours) * OF_OTHERS)
        return consumer(batch)

    return handle


def others(number: int, at: datetime) -> events.Event:
    """A state change, or a hook that holds an instance of a group which no policy selects."""
    instance = f"i-f{number:016x}"
    if number % 2:
        return events.state_change(f"e-{number}", instance, "stopping", at)
    transition = TERMINATING if number % 4 else LAUNCHING
    hook = LifecycleHook(
        name="warm-up", group=f"others-{number % GROUPS}", transition=transition, heartbeat_timeout=3600
    )
    return events.lifecycle_action(f"e-{number}", hook, instance, f"token-{number}", at)


def handled_after(flood: Callable[[World, events.Event], None]) -> float:
    """Seconds from a spot warning until its instance is claimed and its node tainted; infinite where it never is.

    The messages of others are put into their queues by `flood` just before it.
    """
    world = World(1, SMALL, Faults(token_buckets=True), (Arrival(at_seconds=WARNED_AT, kind="spot_warning"),))
    for queue in (world.queue, world.state_changes):
        queue.consumer = takes_time(world, queue.consumer)
    marks, warnings, emit = first_taints(world), list[float](), world.bus.emit

    def noted(event: events.Event) -> None:
        if event["detail-type"] == events.SPOT_WARNING:
            at = datetime.fromtimestamp(world.timeline.now(), UTC)
            for number in range(MESSAGES):
                flood(world, others(number, at))
            warnings.append(world.timeline.now())
        emit(event)

    world.bus.emit = noted
    world.run(HOURS, converge=1)
    claimed = [one for one in world.records.values() if one.has(CauseKind.SPOT_INTERRUPTION)]
    moments = [one.times["claimed"].timestamp() for one in claimed if "claimed" in one.times]
    moments += [marks.get(one.subject.node, inf) for one in claimed]
    return max(moments, default=inf) - warnings[0]


def test_messages_of_others_delay_a_spot_warning_by_five_seconds_at_most():
    def by_their_rules(world: World, event: events.Event) -> None:
        world.bus.deliver(event, json.dumps(event))

    assert handled_after(by_their_rules) <= WITHIN


def test_in_its_own_queue_they_would_delay_it():
    """So the test measures where the rules send them."""
    assert handled_after(lambda world, event: world.queue.send(json.dumps(event))) == inf
