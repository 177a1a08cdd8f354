"""Runs of voluntary disruption one after the other, until nothing is left to do: the end state that policies lead to.

Decides how time passes between runs. The clock of the state moves on by what the policies make a node wait
(consolidateAfter, cooldown); where nothing is left to do then, to the end of the next closed budget window or the next
opening of a pod's window within a week. Pods, prices, policies and launches stay as they are: no new pod comes, no node
is interrupted, a new node does not drift, and what expires later is not awaited."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from leeward.cluster.facets import Known
from leeward.disruption import pod_window
from leeward.disruption.aftermath import after_commands
from leeward.disruption.candidates import workload_on
from leeward.disruption.command import MethodName, Plan
from leeward.disruption.do_not_disrupt import windows_of
from leeward.disruption.plan import plan_in
from leeward.disruption.planning_state import PlanningState
from leeward.drift.detect import Drifted
from leeward.model import well_known
from leeward.model.times import format_instant
from leeward.policy.schedule import is_active, next_start
from leeward.snapshot.cluster import ClusterSnapshot

MOST_RUNS = 100
MOST_WAITS = 50  # for windows, in all
HORIZON = timedelta(days=7)  # within which windows are awaited


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run. `before`, `after`: the cluster without and with its commands."""

    plan: Plan
    before: ClusterSnapshot
    after: ClusterSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """All runs. `last`: the plan in which nothing is left to do, with why each node stays; where `finished` is False it
    is that of the last run that was looked at.
    """

    runs: tuple[PlannedRun, ...]
    last: Plan
    end: ClusterSnapshot
    finished: bool


def until_done(
    snapshot: ClusterSnapshot,
    *,
    only: MethodName | None = None,
    most: int = MOST_RUNS,
) -> Outlook:
    """Return the runs, at most so many. `only`: this method alone acts."""
    runs: list[PlannedRun] = []
    began, new, rested, waits = snapshot.now, frozenset[str](), False, 0
    while True:
        plan = plan_in(_state(snapshot, new), only=only)
        if plan.commands:
            if len(runs) == most:
                return Outlook(runs=tuple(runs), last=plan, end=snapshot, finished=False)
            after = after_commands(snapshot, plan.commands)
            runs.append(PlannedRun(plan=plan, before=snapshot, after=after))
            new |= {node.name for node in after.nodes} - {node.name for node in snapshot.nodes}
            snapshot, rested = _at(after, after.now + _rest(after)), True
            continue
        moment = _opens(snapshot, began + HORIZON) if rested else snapshot.now + _rest(snapshot)
        waits += rested
        if moment is None or waits > MOST_WAITS:
            return Outlook(runs=tuple(runs), last=plan, end=snapshot, finished=moment is None)
        snapshot, rested = _at(snapshot, moment), True


def _state(snapshot: ClusterSnapshot, new: frozenset[str]) -> PlanningState:
    """Return the state of a run, in which new nodes are as their groups launch them now."""
    state = PlanningState(snapshot)
    if new:
        state.drift = {name: Drifted(node=name) if name in new else drifted for name, drifted in state.drift.items()}
    return state


def _at(snapshot: ClusterSnapshot, now: datetime) -> ClusterSnapshot:
    """Return the snapshot at a later moment. Nodes that are empty are noted so, as the planner notes them."""
    noted = {well_known.EMPTY_SINCE: format_instant(snapshot.now)}
    nodes = tuple(
        node
        if well_known.EMPTY_SINCE in node.annotations or workload_on(snapshot, node)
        else replace(node, annotations={**node.annotations, **noted})
        for node in snapshot.nodes
    )
    return replace(snapshot, now=now, node_list=Known(nodes))


def _rest(snapshot: ClusterSnapshot) -> timedelta:
    """Return how long the policies make nodes wait after a run."""
    rules = [policy.disruption for policy in snapshot.policies.policies]
    waits = [wait for rule in rules for wait in (rule.cooldown, rule.consolidate_after) if wait is not None]
    return max(waits, default=timedelta())


def _opens(snapshot: ClusterSnapshot, end: datetime) -> datetime | None:
    """Return the next moment until `end` at which a budget's window closes, or a pod's window opens."""
    return min((moment for moment in _moments(snapshot) if snapshot.now < moment <= end), default=None)


def _moments(snapshot: ClusterSnapshot) -> Iterator[datetime]:
    """Yield when what is closed now opens: a window only adds a limit, so its end matters."""
    for policy in snapshot.policies.policies:
        for budget in policy.disruption.budgets:
            window = budget.window
            if window is not None and is_active(window, snapshot.now):
                start = next_start(window, snapshot.now - window.duration)
                yield from [start + window.duration] if start is not None else []
    for value in windows_of(snapshot.pods):
        opening = None if pod_window.is_open(value, snapshot.now) else pod_window.opens(value, snapshot.now)
        yield from [opening] if opening is not None else []
