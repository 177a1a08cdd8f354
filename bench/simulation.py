"""Virtual time against CPU time, and memory over a long run. Targets: 1,000 times as fast on one core with 100 nodes,
at least 200 arrivals a virtual hour and all faults; after the first week memory grows by less than a tenth.

CPU time of this process is counted, so that neighbours on the machine blur it less; they still slow a core that they
share. A week, because closed records live so long. `DAYS=30 python -m bench simulation` makes the long run longer."""

import gc
import os
import sys
import time
from collections.abc import Callable

from simulation import fleets
from simulation.faults import Faults
from simulation.timeline import Streams
from simulation.world import WARM_UP, World

HOURS, NODES, PER_HOUR = 4.0, 100, 220.0
TARGET = 1000.0
DAYS = int(os.environ.get("DAYS", "10"))
FEW_NODES, FEW_PER_HOUR = 10, 10.0  # of the long run
SETTLED_AFTER = 8  # days
GROWTH = 1.1
DAY = 86400.0


def run() -> bool:
    """Print both; whether the targets are met."""
    fast = speed()
    return flat() and fast


def speed() -> bool:
    """One virtual morning of a large fleet."""
    world = a_world(NODES, HOURS, PER_HOUR)
    began = time.process_time()
    outcome = world.run(HOURS, converge=0)
    seconds = time.process_time() - began
    ratio, arrivals = HOURS * 3600 / seconds, sum(outcome.arrivals.values()) / HOURS
    print(f"{NODES} nodes, {arrivals:.0f} arrivals and {outcome.events / HOURS:.0f} events a virtual hour, all faults:")
    print(f"  {outcome.checks} checks of the invariants, {outcome.executions} executions in {HOURS:.0f} virtual hours")
    print(f"  virtual time / CPU time: {ratio:.0f} x (target {TARGET:.0f} x)")
    return arrivals >= 200 and ratio >= TARGET


def flat() -> bool:
    """Many days of a small fleet; a block is what the interpreter allocates for one object or a part of it."""
    world = a_world(FEW_NODES, DAYS * 24.0, FEW_PER_HOUR)
    blocks: dict[int, int] = {}
    for day in range(1, DAYS + 1):
        world.timeline.after(WARM_UP + day * DAY, _counting(blocks, day), "memory is measured")
    world.run(DAYS * 24.0, converge=60)
    print(f"{FEW_NODES} nodes, {FEW_PER_HOUR:.0f} arrivals an hour, all faults: blocks of memory after the day")
    print("  " + ", ".join(f"{day}: {count}" for day, count in blocks.items()))
    growth = blocks[DAYS] / blocks[min(SETTLED_AFTER, DAYS)]
    print(f"  day {DAYS} against day {min(SETTLED_AFTER, DAYS)}: {growth:.2f} x (target < {GROWTH} x)")
    return growth < GROWTH


def a_world(nodes: int, hours: float, per_hour: float) -> World:
    """Of seed 1."""
    streams = Streams(1)
    fleet = fleets.generate(streams.stream("fleet plan"), nodes=nodes)
    return World(1, fleet, Faults.all(), fleets.arrivals(fleet, streams.stream("arrivals"), hours, per_hour))


def _counting(blocks: dict[int, int], day: int) -> Callable[[], None]:
    def count() -> None:
        gc.collect()
        blocks[day] = sys.getallocatedblocks()

    return count
