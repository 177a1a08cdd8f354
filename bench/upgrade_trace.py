"""Trace of one measured upgrade: what its nodes do every ten seconds, and how long each phase of an old node lasts.

A phase that is long, or a place that is free while old nodes wait, is time lost."""

from itertools import pairwise
from statistics import mean

from local.cluster.objects import is_ready
from simulation.node_instances import instance_behind
from simulation.world import World

EVERY = 10.0  # seconds
PHASES = ("claimed", "tainted", "evicting", "drained", "terminating", "terminated", "closed")  # times of a record
COLUMNS = ("second", "waiting", "starting", "draining", "settling", "ending", "booting", "ready", "beyond")


class Trace:
    """Counts of nodes in each phase, from construction on. `template`: the instances launched before are old."""

    def __init__(self, world: World, size: int) -> None:
        self._world, self._size, self._began = world, size, world.timeline.now()
        self._old = frozenset(name for name, one in world.fleet.instances.items() if not one.gone)
        self.rows: list[tuple[int, ...]] = []
        world.timeline.every(EVERY, self._look, "the trace looks")

    def _look(self) -> None:
        world, counts = self._world, dict.fromkeys(COLUMNS, 0)
        nodes = {instance_behind(node): node for node in world.cluster.store.each("nodes")}
        counts["second"] = round(world.timeline.now() - self._began)
        for name, member in world.fleet.instances.items():
            if member.gone:
                continue
            counts["beyond"] += 1
            node = nodes.get(name)
            if name not in self._old:
                counts["ready" if node is not None and is_ready(node) else "booting"] += 1
            else:
                counts[self._phase(name)] += 1
        counts["beyond"] -= self._size
        self.rows.append(tuple(counts.values()))

    def _phase(self, instance: str) -> str:
        record = self._world.records.get(instance)
        if record is None:
            return "waiting"
        times = record.times
        if "terminating" in times:
            return "ending"
        return "settling" if "drained" in times else "draining" if "evicting" in times else "starting"

    def shown(self) -> str:
        """Return the table, then the average seconds from each phase to the next."""
        lines = [" ".join(f"{name:>9}" for name in COLUMNS)]
        lines += [" ".join(f"{count:>9}" for count in row) for row in self.rows]
        records = [one.times for name, one in self._world.records.items() if name in self._old]
        for first, second in pairwise(PHASES):
            spans = [(one[second] - one[first]).total_seconds() for one in records if first in one and second in one]
            if spans:
                lines.append(f"  {first} to {second}: {mean(spans):.1f} s on average, {max(spans):.0f} s at most")
        return "\n".join(lines)
