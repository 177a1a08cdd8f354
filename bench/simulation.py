"""Virtual time against CPU time, and memory over a long run. Targets: 1,000 times as fast on one core with 100 nodes,
200 events on the event bus a virtual hour or more and all faults; after the first week memory grows by less than a
tenth.

An event is one that a rule of ours matches; one arrival (a spot warning, a scale-in) leads to three or so. A second
line prints the speed at 200 arrivals an hour, without a target.

CPU time of this process is counted, so that other processes on the machine distort it less; they still slow a core that
they share. Growth is measured after a week because closed records are kept for a week. `DAYS=30 python -m bench
simulation` makes the long run longer.
"""

import gc
import os
import sys
import time
from collections.abc import Callable

from simulation import fleets
from simulation.fault_rates import Faults
from simulation.timeline import Streams
from simulation.world import WARM_UP, World

HOURS, NODES = 4.0, 100
USUAL, CROWDED = 80.0, 220.0  # arrivals requested in a virtual hour
EVENTS = 200.0
TARGET = 1000.0
DAYS = int(os.environ.get("DAYS", "10"))
FEW_NODES, FEW_PER_HOUR = 10, 10.0  # of the long run
SETTLED_AFTER = 8  # days
GROWTH = 1.1
DAY = 86400.0


def run(nodes: int = NODES, hours: float = HOURS, day: float = DAY) -> bool:
    """Print both; return whether the targets are met. `day`: seconds of each of the days of the long run."""
    fast = speed(nodes, hours)
    return flat(day) and fast


def speed(nodes: int, hours: float) -> bool:
    """Run one virtual morning of a large fleet, and one in which everything happens at once."""
    ratio, events = _morning(nodes, hours, USUAL)
    print(f"  target {TARGET:.0f} x at {EVENTS:.0f} events or more")
    _morning(nodes, hours, CROWDED)
    return events >= EVENTS and ratio >= TARGET


def _morning(nodes: int, hours: float, per_hour: float) -> tuple[float, float]:
    """Return (virtual time / CPU time, events on the bus an hour)."""
    world = a_world(nodes, hours, per_hour)
    began = time.process_time()
    outcome = world.run(hours, converge=0)
    seconds = time.process_time() - began
    ratio, events = hours * 3600 / seconds, sum(world.bus.emitted.values()) / hours
    arrivals = sum(outcome.arrivals.values()) / hours
    print(f"{nodes} nodes, {arrivals:.0f} arrivals and {events:.0f} events on the bus a virtual hour, all faults:")
    print(f"  {outcome.checks} checks of the invariants, {outcome.executions} executions in {hours:.1f} virtual hours")
    print(f"  virtual time / CPU time: {ratio:.0f} x")
    return ratio, events


def flat(length: float) -> bool:
    """Run many days of a small fleet, of `length` seconds each. A block is the interpreter's allocation for one
    object or a part of it.
    """
    hours = DAYS * length / 3600
    world = a_world(FEW_NODES, hours, FEW_PER_HOUR)
    blocks: dict[int, int] = {}
    for day in range(1, DAYS + 1):
        world.timeline.after(WARM_UP + day * length, _counting(blocks, day), "memory is measured")
    world.run(hours, converge=60)
    print(f"{FEW_NODES} nodes, {FEW_PER_HOUR:.0f} arrivals an hour, all faults: blocks of memory after the day")
    print("  " + ", ".join(f"{day}: {count}" for day, count in blocks.items()))
    growth = blocks[DAYS] / blocks[min(SETTLED_AFTER, DAYS)]
    print(f"  day {DAYS} against day {min(SETTLED_AFTER, DAYS)}: {growth:.2f} x (target < {GROWTH} x)")
    return growth < GROWTH


def a_world(nodes: int, hours: float, per_hour: float) -> World:
    """Return a world of seed 1."""
    streams = Streams(1)
    fleet = fleets.generate(streams.stream("fleet plan"), nodes=nodes)
    return World(1, fleet, Faults.all(), fleets.arrivals(fleet, streams.stream("arrivals"), hours, per_hour))


def _counting(blocks: dict[int, int], day: int) -> Callable[[], None]:
    def count() -> None:
        gc.collect()
        blocks[day] = sys.getallocatedblocks()

    return count
