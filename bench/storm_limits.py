"""Storms of spot warnings within the limits of AWS: token buckets of EC2 and Auto Scaling that other callers use too,
the deployed concurrency of the functions, and the duration of their calls; on nodes full of pods, half of whose
workloads have a budget. Warnings come at once or over some time, and Lambda cuts them into batches in several ways.

`LIMITS=all python -m bench storm` adds the large storms, a number warns that many nodes at once; `BREAKS=1` also
searches for the smallest storm in which a deadline breaks, by doubling and halving.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from bench.storm_chain import GROUP, check_now_and_then, first_taints
from bench.upgrade_fleet import BenchFleet, BenchGroup, Figures, workloads_of
from leeward.policy.document import ClusterPolicies, ClusterSettings, GroupSelector, NodePolicy
from local.cluster.objects import Obj
from simulation import fleets
from simulation.aws.compute import SimInstance
from simulation.aws.queue import BATCH, READ_AT_ONCE, split
from simulation.fault_rates import Faults
from simulation.world import WARM_UP, World

MOST = 4000  # warnings: a search ends there
COUNT = 100  # warnings at once, from which a search begins
NODES_PER_WARNING = 2.5
PODS_PER_NODE = 10
CALL_SECONDS = 0.3  # of a call of fn drain or fn terminate: the median on the local stack, docs/benchmarks.md
MESSAGE_SECONDS = 0.027  # of fn interruption: 7.7 ms of a core, and 512 MB have 0.29 of one
TAINTED_WITHIN = 15.0  # seconds
EVICTED = 0.999  # share of the pods that no budget holds, so many seconds before EC2 takes their instances:
BEFORE = 10.0
NOTICE = 120.0
HOURS, REST = 0.1, 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Warnings on so many of two and a half times as many nodes. `pollers`: of Lambda, which share what waits; `most`:
    messages in a batch; `seconds`: from the first warning to the last; `call`: seconds of a call of fn drain or fn
    terminate.
    """

    count: int
    pollers: int = READ_AT_ONCE
    most: int = BATCH
    seconds: float = 0.0
    call: float = CALL_SECONDS

    def __str__(self) -> str:
        """Return what is special about it."""
        when = f"over {self.seconds:.0f} s" if self.seconds else "at once"
        cut = f"{self.pollers} pollers" if self.pollers > 1 else "one poller"
        return f"{self.count:,} warnings {when}, {cut} with batches of {self.most} at most, calls of {self.call} s"


SMALL = (
    Storm(count=50),
    Storm(count=50, pollers=1),
    Storm(count=90),
    Storm(count=100, most=10),
    Storm(count=100, seconds=10.0),
    Storm(count=COUNT, pollers=1),
)
LARGE = (
    Storm(count=120, seconds=240.0),
    Storm(count=250, seconds=30.0),
    Storm(count=500, seconds=60.0),
    Storm(count=1000),
    Storm(count=1000, call=0.6),
    Storm(count=2000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """Result of one storm. `tainted`: seconds from a node's warning to its taint, of the slowest; None where a node
    never was; `evicted`: share; `launched`: nodes launched ahead, which a termination that AWS throttles may not
    offset; `gone`: seconds from the first warning until the last record closed; `throttled`: attempts by operation,
    and calls of functions.
    """

    storm: Storm
    nodes: int
    pods: int
    tainted: float | None
    evicted: float
    late: int
    lost: int
    launched: int
    gone: float
    throttled: Mapping[str, int]
    attempts: Mapping[str, int]
    calls: Mapping[str, int]
    violations: tuple[str, ...]
    cpu: float

    @property
    def met(self) -> bool:
        """True when every deadline held and nothing was lost."""
        in_time = self.tainted is not None and self.tainted <= TAINTED_WITHIN
        return in_time and self.evicted >= EVICTED and self.lost == 0 and not self.violations


def measure(storm: Storm) -> Limited:
    """Run the storm until no work is left."""
    began = time.process_time()
    world = _world(storm)
    check_now_and_then(world, max(1, storm.count // 100))
    watch = _Watch(world, storm)
    world.timeline.after(WARM_UP + 1, watch.begin, "the storm begins")
    outcome = world.run(HOURS, converge=REST)
    limits = world.injector.limits
    assert limits is not None
    throttled = Counter(limits.throttled) + Counter({f"fn {name}": n for name, n in world.system.throttles.items()})
    closed = [record.times["closed"].timestamp() for record in world.records.values() if "closed" in record.times]
    return Limited(
        storm=storm,
        nodes=world.fleet.groups[GROUP].plan.size,
        pods=len(watch.pods),
        tainted=watch.tainted,
        evicted=1 - len(watch.left) / max(1, len(watch.pods)),
        late=len(watch.left),
        lost=len(world.queue.dead_letters) + len(world.queue.redriven),
        launched=sum(len(record.replacement.launched) for record in world.records.values() if record.replacement),
        gone=max(closed, default=watch.at) - watch.at,
        throttled=dict(throttled.most_common()),
        attempts=dict(limits.attempts.most_common()),
        calls=dict(world.system.calls.most_common()),
        violations=(*map(str, outcome.violations), *map(str, outcome.unexpected)),
        cpu=time.process_time() - began,
    )


class _Watch:
    """Observer of the warned nodes and of the pods that no budget holds."""

    def __init__(self, world: World, storm: Storm) -> None:
        self._world, self._storm = world, storm
        self._tainted = first_taints(world)
        self._warned: dict[str, float] = {}  # node -> when
        self.at = 0.0
        self.pods: set[str] = set()  # on warned nodes, without a budget
        self.left: set[str] = set()  # of them those for which no termination was requested in time

    def begin(self) -> None:
        """Warn the nodes, each at its time."""
        self.at = self._world.timeline.now()
        members = [m for m in self._world.fleet.groups[GROUP].members.values() if not m.leaving]
        warned = enumerate(_spread(members, self._storm.count))
        for delay, part in groupby(warned, lambda entry: self._storm.seconds * entry[0] / self._storm.count):
            warn = partial(self._warn, [member for _, member in part])
            self._world.timeline.after(delay, warn, "warned")

    def _warn(self, members: Sequence[SimInstance]) -> None:
        nodes = [member.node for member in members]
        self._warned.update(dict.fromkeys(nodes, self._world.timeline.now()))
        self.pods.update(pod["metadata"]["uid"] for pod in self._free(nodes))
        for member in members:
            self._world.fleet.notices.spot_warning(member)
        self._world.timeline.after(NOTICE - BEFORE, partial(self._look, nodes), "ten seconds before EC2 takes them")

    @property
    def tainted(self) -> float | None:
        """Seconds from a warning to the taint, of the slowest node; None where one never was tainted."""
        if not self._warned.keys() <= self._tainted.keys():
            return None
        return max((self._tainted[node] - warned for node, warned in self._warned.items()), default=0.0)

    def _look(self, nodes: Sequence[str]) -> None:
        free = list(self._free(nodes))
        self.pods.update(pod["metadata"]["uid"] for pod in free)
        self.left.update(pod["metadata"]["uid"] for pod in free if not pod["metadata"].get("deletionTimestamp"))

    def _free(self, nodes: Sequence[str]) -> Iterator[Obj]:
        """Return the pods on the nodes that no budget selects."""
        store = self._world.cluster.store
        held = {budget["spec"]["selector"]["matchLabels"]["app"] for budget in store.each("poddisruptionbudgets")}
        for pod in (pod for node in nodes for pod in store.pods_on(node)):
            if pod["metadata"].get("labels", {}).get("app") not in held:
                yield pod


def _spread(members: list[SimInstance], count: int) -> list[SimInstance]:
    """Return every so-many-th member: all zones equally."""
    step = len(members) / count
    return [members[int(number * step)] for number in range(count)]


def _world(storm: Storm) -> World:
    nodes = int(storm.count * NODES_PER_WARNING)
    figures = replace(Figures.read(), pods_per_node=PODS_PER_NODE)
    policy = NodePolicy(name=GROUP, selector=GroupSelector(groups=(GROUP,)))
    group = BenchGroup(
        name=GROUP,
        size=nodes,
        maximum=3 * nodes,
        zones=("us-east-1a", "us-east-1b", "us-east-1c"),
        instance_type="m5.large",
        selected=True,
        spot=True,
    )
    fleet = BenchFleet(
        groups=(group,),
        workloads=tuple(workloads_of(figures, nodes)),
        policies=ClusterPolicies(settings=ClusterSettings(name=fleets.CLUSTER), policies=(policy,)),
    )
    world = World(1, fleet, Faults(token_buckets=True), ())
    world.system.call_seconds, world.system.message_seconds = storm.call, MESSAGE_SECONDS
    world.queue.cut = partial(split, pollers=storm.pollers, most=storm.most)
    world.system.balancers.groups.clear()
    world.fleet.subnet_size = figures.addresses
    return world


def reported(found: Limited) -> None:
    """Print one storm."""
    tainted = "never all of them" if found.tainted is None else f"after {found.tainted:.0f} s"
    print(
        f"  {found.storm}, of {found.nodes:,} nodes: tainted {tainted} (target {TAINTED_WITHIN:.0f} s);"
        f" {found.late} of {found.pods:,} pods without a budget not evicted {BEFORE:.0f} s before EC2 takes the node:"
        f" {found.evicted:.2%} (target {EVICTED:.1%}); messages lost {found.lost};"
        f" launched ahead {found.launched}; last record closed after {found.gone:.0f} s;"
        f" invariants broken {len(found.violations)}; {found.cpu:.0f} s of CPU"
    )
    shown = ", ".join(f"{name} {number} of {found.attempts.get(name, '?')}" for name, number in found.throttled.items())
    print(f"    throttled attempts: {shown or 'none'}; calls {dict(found.calls)}", flush=True)
    for violation in found.violations[:5]:
        print(f"    {violation}")


def run(limits: str, *, breaks: bool) -> bool:
    """Print the small storms, `all` storms, or the one of so many warnings at once; with `breaks` also the smallest
    size at which a deadline breaks. Return whether every deadline held in the named storms.
    """
    print("within AWS's limits, virtual time: token buckets (Auto Scaling's are assumed), concurrency, neighbours:")
    storms = (*SMALL, *LARGE) if limits == "all" else (Storm(count=int(limits)),) if limits else SMALL
    met = True
    for storm in storms:
        found = measure(storm)
        reported(found)
        met = met and found.met
    if breaks:
        good, bad = _bracket(measure(Storm(count=COUNT)))
        print(f"  the first deadline breaks between {good:,} and {bad:,} warnings")
    return met


def _bracket(first: Limited) -> tuple[int, int]:
    """Return (a size at which every deadline held, one at most a quarter or one warning larger at which one broke). 0
    where even one warning breaks it; the search ends at MOST.
    """
    good, bad, found = 0, 0, first
    while True:
        count = found.storm.count
        good, bad = (count, bad) if found.met else (good, count)
        if good >= MOST or bad == 1 or (good and bad and bad <= max(good + 1, good * 1.25)):
            return good, bad or 2 * good
        size = 2 * good if not bad else (good + bad) // 2
        found = measure(Storm(count=size))
        reported(found)
