"""Storm of spot warnings within the limits of AWS: token buckets of EC2 and Auto Scaling that other callers use too,
the deployed concurrency of the functions, and the duration of their calls; on nodes full of pods, half of whose
workloads have a budget.

`LIMITS=1000 python -m bench storm` warns a thousand of 2,500 nodes; `BREAKS=1` also searches for the smallest storm in
which a deadline breaks, by doubling and halving.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bench.storm_chain import GROUP, check_now_and_then, first_taints
from bench.upgrade_fleet import BenchFleet, BenchGroup, Figures, workloads_of
from leeward.policy.document import ClusterPolicies, ClusterSettings, NodePolicy, Selector
from local.cluster.objects import Obj
from simulation import fleets
from simulation.aws.compute import SimInstance
from simulation.fault_rates import Faults
from simulation.world import WARM_UP, World

MOST = 4000  # warnings: a search ends there
COUNT = 100  # warnings, where LIMITS names no other number; a few minutes of CPU
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
class Limited:
    """Result of one storm. `tainted`: seconds until the last warned node was, None where one never was; `evicted`:
    share; `throttled`: attempts by operation, and calls of functions.
    """

    count: int
    nodes: int
    pods: int
    tainted: float | None
    evicted: float
    late: int
    lost: int
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


def storm(count: int) -> Limited:
    """Warn `count` of two and a half times as many nodes in the same second."""
    began = time.process_time()
    world = _world(count)
    check_now_and_then(world, max(1, count // 100))
    watch = _Watch(world, count)
    world.timeline.after(WARM_UP + 1, watch.begin, "the storm begins")
    outcome = world.run(HOURS, converge=REST)
    limits = world.injector.limits
    assert limits is not None
    throttled = Counter(limits.throttled) + Counter({f"fn {name}": n for name, n in world.system.throttles.items()})
    closed = [record.times["closed"].timestamp() for record in world.records.values() if "closed" in record.times]
    return Limited(
        count=count,
        nodes=world.fleet.groups[GROUP].plan.size,
        pods=len(watch.pods),
        tainted=watch.tainted,
        evicted=1 - len(watch.left) / max(1, len(watch.pods)),
        late=len(watch.left),
        lost=len(world.queue.dead_letters) + len(world.queue.redriven),
        gone=max(closed, default=watch.at) - watch.at,
        throttled=dict(throttled.most_common()),
        attempts=dict(limits.attempts.most_common()),
        calls=dict(world.system.calls.most_common()),
        violations=(*map(str, outcome.violations), *map(str, outcome.unexpected)),
        cpu=time.process_time() - began,
    )


class _Watch:
    """Observer of the warned nodes and of the pods that no budget holds."""

    def __init__(self, world: World, count: int) -> None:
        self._world, self._count = world, count
        self._tainted = first_taints(world)
        self._warned: set[str] = set()
        self.at = 0.0
        self.pods: set[str] = set()  # on warned nodes, without a budget
        self.left: set[str] = set()  # of them those for which no termination was requested in time

    def begin(self) -> None:
        """Warn all of them."""
        self.at = self._world.timeline.now()
        members = [m for m in self._world.fleet.groups[GROUP].members.values() if not m.leaving]
        warned = _spread(members, self._count)
        self._warned = {member.node for member in warned}
        self.pods = {pod["metadata"]["uid"] for pod in self._free()}
        for member in warned:
            self._world.fleet.notices.spot_warning(member)
        self._world.timeline.after(NOTICE - BEFORE, self._look, "ten seconds before EC2 takes them")

    @property
    def tainted(self) -> float | None:
        """Seconds until the last warned node was tainted; None where one never was."""
        moments = [self._tainted.get(node) for node in self._warned]
        known = [moment for moment in moments if moment is not None]
        return max(known) - self.at if len(known) == len(moments) else None

    def _look(self) -> None:
        self.left = {pod["metadata"]["uid"] for pod in self._free() if not pod["metadata"].get("deletionTimestamp")}
        self.pods |= self.left

    def _free(self) -> Iterator[Obj]:
        """Return the pods on warned nodes that no budget selects."""
        store = self._world.cluster.store
        held = {budget["spec"]["selector"]["matchLabels"]["app"] for budget in store.each("poddisruptionbudgets")}
        for pod in store.each("pods"):
            on_warned = pod["spec"].get("nodeName") in self._warned
            if on_warned and pod["metadata"].get("labels", {}).get("app") not in held:
                yield pod


def _spread(members: list[SimInstance], count: int) -> list[SimInstance]:
    """Return every so-many-th member: all zones equally."""
    step = len(members) / count
    return [members[int(number * step)] for number in range(count)]


def _world(count: int) -> World:
    nodes = int(count * NODES_PER_WARNING)
    figures = replace(Figures.read(), pods_per_node=PODS_PER_NODE)
    policy = NodePolicy(name=GROUP, selector=Selector(groups=(GROUP,)))
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
    world.system.call_seconds, world.system.message_seconds = CALL_SECONDS, MESSAGE_SECONDS
    world.system.balancers.groups.clear()
    world.fleet.subnet_size = figures.addresses
    return world


def reported(found: Limited) -> None:
    """Print one storm."""
    tainted = "never all of them" if found.tainted is None else f"after {found.tainted:.0f} s"
    print(
        f"  {found.count:,} warnings on {found.nodes:,} nodes: tainted {tainted} (target {TAINTED_WITHIN:.0f} s);"
        f" {found.late} of {found.pods:,} pods without a budget not evicted {BEFORE:.0f} s before EC2 takes the node:"
        f" {found.evicted:.2%} (target {EVICTED:.1%}); messages lost {found.lost}; last record closed after"
        f" {found.gone:.0f} s; invariants broken {len(found.violations)}; {found.cpu:.0f} s of CPU"
    )
    shown = ", ".join(f"{name} {number} of {found.attempts.get(name, '?')}" for name, number in found.throttled.items())
    print(f"    throttled attempts: {shown or 'none'}; calls {dict(found.calls)}", flush=True)
    for violation in found.violations[:5]:
        print(f"    {violation}")


def run(count: int, *, breaks: bool) -> bool:
    """Print the storm of `count`; with `breaks` also the smallest size at which a deadline breaks."""
    print("within AWS's limits, virtual time: token buckets (Auto Scaling's are assumed), concurrency, neighbours:")
    found = storm(count)
    reported(found)
    if breaks:
        good, bad = _bracket(found)
        print(f"  the first deadline breaks between {good:,} and {bad:,} warnings")
    return found.met


def _bracket(first: Limited) -> tuple[int, int]:
    """Return (a size at which every deadline held, one at most a quarter or one warning larger at which one broke). 0
    where even one warning breaks it; the search ends at MOST.
    """
    good, bad, found = 0, 0, first
    while True:
        good, bad = (found.count, bad) if found.met else (good, found.count)
        if good >= MOST or bad == 1 or (good and bad and bad <= max(good + 1, good * 1.25)):
            return good, bad or 2 * good
        size = 2 * good if not bad else (good + bad) // 2
        found = storm(size)
        reported(found)
