"""Upgrade in virtual time on the fleet of `bench/fleet.yaml`: Leeward's own functions and state machines against the
documented behaviour of an EKS managed node group (`bench/eks_reference.py`), in the same simulated world.

Targets: of 100 nodes at most half of EKS' time at 10 % and 33 %, 0.8 of it at one node, and with `update.maxSurge`
at EKS' own peak 0.60 of it at 10 % and 0.58 at 33 %; at every size at most 1.25 times the bound (1.08 for 100 nodes at
10 %), no budget exceeded, no pod moved twice by us. The bound: boot + the longer of the longest chain of turns under
one budget and all drains / maxUnavailable + settle + termination.
"""

import os
import sys
import time
from dataclasses import dataclass

from bench.eks_reference import EksUpdate
from bench.upgrade_fleet import GROUP, Figures, a_world, update_policy
from bench.upgrade_measure import Measure, Measured, tainted_nodes
from bench.upgrade_trace import Trace
from leeward.upgrade.surge.sizes import parallelism
from leeward.workflow.executions import execution_name
from simulation.definitions import NODE_GROUP_UPGRADE
from simulation.world import WARM_UP, World

HOURS = 40.0  # no upgrade takes longer
BOUND = 1.25
TARGETED = 100  # nodes, for which the targets against EKS are set
TARGETS = {"1": 0.8}
TARGET = 0.5
BOUNDS = {"10%": 1.08}  # of 100 nodes, with the default surge
AT_EKS_PEAK = {"33%": 0.58}
TERMINATION = 25  # seconds from the request until EC2 reports terminated, on average


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Both sides of one size and one maxUnavailable. `eks` follows the letter of its documentation; `kinder` are the
    seconds of a reading that favours EKS; `at_peak`: ours with as many new nodes as EKS has at its peak, None where our
    default surge is not higher than that; `bound` in seconds.
    """

    nodes: int
    unavailable: str
    ours: Measured
    eks: Measured
    kinder: float
    at_peak: Measured | None
    bound: float
    cpu: float

    @property
    def ratio(self) -> float:
        """Our seconds divided by EKS' seconds."""
        return self.ours.seconds / self.eks.seconds

    @property
    def missed(self) -> list[str]:
        """Missed targets, each in words."""
        target, found = TARGETS.get(self.unavailable, TARGET), list[str]()
        if self.nodes == TARGETED and self.ratio > target:
            why = f"{target} x EKS"
            found.append(f"{why}, which is less than the bound" if target * self.eks.seconds < self.bound else why)
        at_peak = AT_EKS_PEAK.get(self.unavailable, 0.6)
        if self.nodes == TARGETED and self.at_peak and self.at_peak.seconds > at_peak * self.eks.seconds:
            found.append(f"{at_peak} x EKS at its own peak surge")
        limit = BOUNDS.get(self.unavailable, BOUND) if self.nodes == TARGETED else BOUND
        if self.ours.seconds > limit * self.bound:
            found.append(f"{limit} x the bound")
        if self.ours.moved_again or self.ours.exceeded:
            found.append("no pod moved twice, no budget exceeded")
        return found


def run() -> bool:
    """Print the table; return whether every target is met. `NODES=20,100` and `SHARES=1,10%` select a part of it; 500
    one by one take ten minutes of CPU time and more. `TRACE=1` prints what the nodes of our own upgrades do meanwhile.
    """
    figures = Figures.read()
    sizes = [int(count) for count in _named("NODES")] or figures.nodes
    done: list[Row] = []
    for nodes in sizes:
        for share in _named("SHARES") or figures.unavailable:
            done.append(row(figures, nodes, share))
            shown(done[-1])
    return not any(one.missed for one in done)


def _named(variable: str) -> list[str]:
    return [part for part in os.environ.get(variable, "").split(",") if part]


def _progress(nodes: int, unavailable: str, who: str) -> None:
    """Print progress: large fleets take minutes each."""
    print(f"  ... {nodes} nodes at {unavailable}: {who}", file=sys.stderr, flush=True)


def row(figures: Figures, nodes: int, unavailable: str) -> Row:
    """Run both sides."""
    began = time.process_time()
    _progress(nodes, unavailable, "Leeward")
    ours, bound = leeward(figures, nodes, unavailable)
    _progress(nodes, unavailable, "EKS")
    reference = eks(figures, nodes, unavailable)
    kinder = reference.seconds  # with one node at a time both readings are the same
    if parallelism(update_policy(unavailable), nodes) > 1:
        _progress(nodes, unavailable, "EKS, node by node as slots become free")
        kinder = eks(figures, nodes, unavailable, by_slots=True).seconds
    at_peak = None
    if 0 < reference.most_surge < ours.most_surge:
        _progress(nodes, unavailable, "Leeward with EKS' peak surge")
        at_peak, _ = leeward(figures, nodes, unavailable, max_surge=reference.most_surge)
    cpu = time.process_time() - began
    return Row(
        nodes=nodes,
        unavailable=unavailable,
        ours=ours,
        eks=reference,
        kinder=kinder,
        at_peak=at_peak,
        bound=bound,
        cpu=cpu,
    )


def leeward(figures: Figures, nodes: int, unavailable: str, max_surge: int | None = None) -> tuple[Measured, float]:
    """Return the measures of our own upgrade, and the bound. Raises RuntimeError for one that fails.

    The record reports the end: an execution whose history is nearly full delegates to another.
    """
    world = a_world(figures, nodes, unavailable, ours=True, max_surge=max_surge)
    found: list[tuple[Measured, float]] = []
    traces: list[Trace] = []
    machine = world.system.machines[NODE_GROUP_UPGRADE]

    def begin() -> None:
        measure = Measure(world, nodes, lambda: tainted_nodes(world))
        traces.extend([Trace(world, nodes)] if os.environ.get("TRACE") else [])
        bound = the_bound(figures, world, nodes, unavailable)
        template = world.fleet.groups[GROUP].template
        template.add("ami-00000000000000002")
        machine.begin(execution_name(GROUP, 1), {"group": GROUP, "launchTemplateVersion": "2"})
        world.seen = lambda: ended(measure, bound)

    def ended(measure: Measure, bound: float) -> None:
        record = world.upgrades.get(GROUP)
        if record is not None and record.ended is not None and not machine.executions and not found:
            found.append((measure.result(), bound))
            world.timeline.stopped = True

    world.timeline.after(WARM_UP + 1, begin, "the upgrade starts")
    world.run(HOURS, converge=0)
    if not found or world.upgrades[GROUP].error or world.violations:
        raise RuntimeError("\n".join(["the upgrade failed", *map(str, world.violations), *list(world.story)[-20:]]))
    for trace in traces:
        print(trace.shown(), flush=True)
    return found[0]


def eks(figures: Figures, nodes: int, unavailable: str, *, by_slots: bool = False) -> Measured:
    """Return the measures of the reference."""
    world = a_world(figures, nodes, unavailable, ours=False)
    found: list[Measured] = []

    def begin() -> None:
        at_once = parallelism(update_policy(unavailable), nodes)
        update = EksUpdate(world, at_once, figures.seed, by_slots=by_slots)
        measure = Measure(world, nodes, update.draining)
        update.begin()
        update.on_end.append(lambda: found.append(measure.result()))
        update.on_end.append(lambda: setattr(world.timeline, "stopped", True))

    world.timeline.after(WARM_UP + 1, begin, "the update starts")
    world.run(HOURS, converge=0)
    return found[0]


def the_bound(figures: Figures, world: World, nodes: int, unavailable: str) -> float:
    """Return the bound in seconds. A turn under a budget lasts until the replacement is Ready; the pods of one turn
    stop concurrently.
    """
    chain, drains = 0, 0
    budgets = world.kubernetes.budgets()
    loads: dict[str, int] = {}
    for node in world.kubernetes.nodes():
        most = 1
        for budget in budgets:
            load = sum(budget.selects(pod) for pod in world.kubernetes.pods_on(node.name))
            loads[budget.name] = loads.get(budget.name, 0) + load
            most = max(most, load)
        drains += figures.grace + (most - 1) * figures.ready
    chain = figures.grace + (max(loads.values(), default=1) - 1) * figures.ready
    together = drains / parallelism(update_policy(unavailable), nodes)
    return figures.boot + max(chain, together) + figures.settle + TERMINATION


def shown(row: Row) -> None:
    """Return one line on the time, missed targets, one line for each side, and one at EKS' own peak surge."""
    missed = f"\n  MISSED: {', '.join(row.missed)}" if row.missed else ""
    print(
        f"{row.nodes} nodes, maxUnavailable {row.unavailable}: {row.ours.seconds:,.0f} s, EKS {row.eks.seconds:,.0f} s:"
        f" {row.ratio:.2f} x (as slots become free {row.kinder:,.0f} s: {row.ours.seconds / row.kinder:.2f} x);"
        f" bound {row.bound:,.0f} s: {row.ours.seconds / row.bound:.2f} x; {row.cpu:.0f} s of CPU time{missed}"
    )
    if row.at_peak is not None:
        share = row.at_peak.seconds / row.eks.seconds
        print(f"  with maxSurge {row.eks.most_surge}, EKS' own peak: {row.at_peak.seconds:,.0f} s, {share:.2f} x EKS")
    sides = (("Leeward", row.ours), ("at peak", row.at_peak), ("EKS", row.eks))
    for name, one in ((name, one) for name, one in sides if one is not None):
        print(
            f"  {name:8} evictions refused {one.refused}, pods moved again {one.moved_again}, surge"
            f" {one.surge_hours:.1f} node-hours (at most {one.most_surge} nodes), unavailable at most"
            f" {one.most_unavailable}, budgets exceeded {one.exceeded}, pods without a place {one.pending:.1f} h"
        )
    sys.stdout.flush()
