"""Function `disruption-planner`: computes what each cluster needs now, and starts the run that does it.

Annotations are written first (since when a node is empty, that it has expired or drifted). A plan becomes a run: its
record is written, which claims the nodes, and its execution is started under a name derived from the record. A cluster
has one run at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

from leeward.disruption.annotations import changes_in, write_annotations, write_drift_events
from leeward.disruption.blocked_nodes import MOST_NAMED, long_blocked, write_blocked_events
from leeward.disruption.candidates import Candidate, candidates
from leeward.disruption.command import Command, DisruptionPlan
from leeward.disruption.observation import for_seconds, observe, seen_nodes
from leeward.disruption.plan import plan_disruption, plan_in
from leeward.disruption.planning_state import PlanningState
from leeward.disruption.record import DisruptionRecord, groups_named
from leeward.disruption.run import restart, start
from leeward.disruption.targets import launch_inputs
from leeward.drift.detect import all_drift, wanted_launches
from leeward.errors import LeewardError
from leeward.isolation import Executor, in_threads, isolate_errors
from leeward.ports import Ports
from leeward.ports.clock import Clock
from leeward.ports.records import Disruptions
from leeward.retry import retry
from leeward.snapshot.cluster import ClusterSnapshot
from leeward.time_budget import SearchTime, TimeBudget
from leeward.upgrade.automatic import start_due, with_newest_images, write_failures

SEARCH = 120.0  # seconds at most, of all clusters together: the best result by then is the plan
AFTER_SEARCH = 90.0  # seconds of the function's time that no search takes: annotations, Events and the claim need them
CLUSTERS = 4  # at a time: each holds a snapshot
CLUSTER_SECONDS = 240.0  # for all calls to one cluster's API, of the function's 300
PAUSES = (1.0, 3.0)  # seconds between tries
WRITE = 40.0  # seconds for annotations, and as many for Events
LARGEST = 320_000  # bytes of a run's record, about, beside what it remembers: DynamoDB takes 400 KB an item
A_NODE, A_TYPE = 900, 22  # bytes, with what the run will record about them


@dataclass(slots=True)
class PlannerResult:
    """Result of one call, by cluster."""

    annotated: int = 0
    events: int = 0
    disruptions: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)
    upgrades: list[str] = field(default_factory=list)  # executions that `update.auto` has started
    paused: list[str] = field(default_factory=list)
    timed_out: list[str] = field(default_factory=list)  # methods whose search the time has ended: `blue: consolidation`
    # nodes that pods have kept for long, by cluster and namespace
    blocked: dict[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)  # clusters and nodes that could not be read or written

    def note(self, what: str, error: LeewardError) -> None:
        """Record one error."""
        self.errors.append(f"{what}: {type(error).__name__}: {error}")

    def add(self, other: "PlannerResult") -> None:
        """Add the result of another cluster."""
        self.annotated += other.annotated
        self.events += other.events
        for name in ("disruptions", "restarted", "upgrades", "paused", "timed_out", "errors"):
            getattr(self, name).extend(getattr(other, name))
        self.blocked |= other.blocked

    def to_json(self) -> dict[str, Any]:
        """Return the result for the log."""
        blocked = {
            cluster: {namespace: {"nodes": len(nodes), "names": nodes[:MOST_NAMED]} for namespace, nodes in one.items()}
            for cluster, one in self.blocked.items()
            if one
        }
        return {name: getattr(self, name) for name in self.__slots__} | {"blocked": blocked}


def decide_once(ports: Ports, each: Executor = in_threads) -> PlannerResult:
    """Decide for every cluster. Clusters are read in parallel and planned in sequence: planning takes a whole core."""
    result = PlannerResult()
    names = ports.clusters.names()
    planner = _Planner(ports=ports, share=1 / max(len(names), 1))
    for decided in each(planner.decide, names, CLUSTERS):
        result.add(decided)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """Planner of all clusters. `share`: the part of each time span that one cluster gets."""

    ports: Ports
    share: float
    planning: Lock = field(default_factory=Lock)

    def decide(self, cluster: str) -> PlannerResult:
        """Decide for one cluster. Raises nothing."""
        result, clock = PlannerResult(), self.ports.clock
        with isolate_errors(partial(result.note, cluster)):
            # An observation is some twenty calls: one throttled call is no reason to wait for the next schedule.
            ports = self.ports.of_cluster(cluster).for_seconds(CLUSTER_SECONDS)
            retry(partial(self._decide, cluster, ports, result), clock, PAUSES)
        return result

    def _decide(self, cluster: str, ports: Ports, result: PlannerResult) -> None:
        if ports.clusters.policies(cluster).pauses.voluntary():
            result.paused.append(cluster)
            return
        record = ports.disruptions.read(cluster)
        name = restart(record, ports.disruption_executions, ports.clock)
        if name is not None:
            result.restarted.append(name)
        snapshot = with_newest_images(observe(cluster, ports, record), ports.nodegroups, ports.templates)
        with self.planning:
            seen = PlanningState(snapshot, SearchTime(search_budget(ports.clock, ports.budget, self.share)))
            changes = changes_in(seen)
            result.blocked[cluster] = long_blocked(seen)
            closed = record is None or not record.open
            plan = plan_in(seen) if closed else None

        def note(node: str, error: LeewardError) -> None:
            result.note(f"{cluster}: {node}", error)

        kubernetes, writing = ports.clusters.kubernetes(cluster), WRITE * self.share
        result.annotated += write_annotations(changes, kubernetes, for_seconds(writing, ports.clock), note)
        result.events += write_drift_events(seen, changes, kubernetes, for_seconds(writing, ports.clock), note)
        if plan is None:
            self._upgrade(snapshot, record, ports, result)
            return
        result.timed_out += [f"{cluster}: {method.value}" for method in plan.timed_out]
        claimed = claim(plan, snapshot, record, ports.disruptions, ports.clock)
        if claimed is not None:
            result.disruptions.append(start(claimed, ports.disruption_executions))
        else:
            remember(seen, record, ports.disruptions)
        self._upgrade(snapshot, claimed, ports, result)
        result.events += write_blocked_events(snapshot, plan, for_seconds(writing, ports.clock), ports.clusters, note)

    def _upgrade(
        self, snapshot: ClusterSnapshot, run: DisruptionRecord | None, ports: Ports, result: PlannerResult
    ) -> None:
        """Start the automatic upgrades that are due, of groups that the open disruption run leaves alone."""
        with isolate_errors(partial(result.note, f"{snapshot.cluster}: upgrades")):
            result.upgrades += start_due(snapshot, run.groups if run is not None and run.open else (), ports)
            write_failures(snapshot, ports.upgrades, ports.clusters)


def search_budget(clock: Clock, within: TimeBudget | None, share: float = 1.0) -> TimeBudget:
    """Return the budget of one cluster's search that begins now: never the time that writing its result takes."""
    budget = TimeBudget.of(clock, SEARCH * share)
    return budget if within is None else budget.part(max(0.0, within.left - AFTER_SEARCH))


def claim_disruption(cluster: str, ports: Ports, by: str = "") -> DisruptionRecord | None:
    """Decide now and claim the run; None where there is nothing to do, or another execution was faster. `by`: who
    starts it.
    """
    if ports.clusters.policies(cluster).pauses.voluntary():
        return None
    record = ports.disruptions.read(cluster)
    snapshot = observe(cluster, ports, record)
    plan = plan_disruption(snapshot, budget=search_budget(ports.clock, ports.budget))
    return claim(plan, snapshot, record, ports.disruptions, ports.clock, by)


def claim(
    plan: DisruptionPlan,
    snapshot: ClusterSnapshot,
    last: DisruptionRecord | None,
    disruptions: Disruptions,
    clock: Clock,
    by: str = "",
) -> DisruptionRecord | None:
    """Claim the plan's nodes with one conditional write: a second writer finds the record of the first. `by`: who
    starts the run, empty for the planner.
    """
    commands = tuple(commands_that_fit(plan.commands))
    if plan.method is None or not commands:
        return None
    known, _ = candidates(snapshot)
    commands = tuple(_with_inputs(snapshot, one, known) for one in commands)
    nodes = {name: node.instance_id for one in commands for name in one.nodes if (node := snapshot.node(name))}
    members = {
        name: group.name for name in nodes if (node := snapshot.node(name)) and (group := snapshot.group_of(node))
    }
    wanted = wanted_launches(snapshot, all_drift(snapshot))
    record = DisruptionRecord(
        cluster=snapshot.cluster,
        number=last.number + 1 if last is not None else 1,
        method=plan.method,
        began=clock.now().replace(microsecond=0),
        commands=commands,
        nodes=nodes,
        members=members,
        groups=groups_named(members.values(), commands),
        cooldowns=last.cooldowns if last is not None else {},
        suspended=last.suspended if last is not None else (),
        wanted=wanted,
        failed=last.failed if last is not None else {},
        seen=seen_nodes(snapshot),
        requested_by=by,
    )
    return disruptions.write(record)


def remember(seen: PlanningState, record: DisruptionRecord | None, disruptions: Disruptions) -> None:
    """Write what groups launch now, since when, what their launches do not bring and what nodes show into the record of
    an ended run, where that has changed. Without a record the first run writes it. A writer that was faster is not
    repeated: the next call observes the same.
    """
    if record is None or record.open:
        return
    wanted, nodes = wanted_launches(seen.snapshot, seen.drift.values()), seen_nodes(seen.snapshot)
    if (wanted, nodes) != (record.wanted, record.seen):
        disruptions.write(replace(record, wanted=wanted, seen=nodes))


def _with_inputs(snapshot: ClusterSnapshot, command: Command, known: Mapping[str, Candidate]) -> Command:
    """Return the command with the digest of what its launches are planned from."""
    if not command.replacements:
        return command
    nodes = [known[name] for name in command.nodes if name in known]
    return replace(command, inputs=launch_inputs(snapshot, nodes, command.replacements[0].group))


def commands_that_fit(commands: Iterable[Command]) -> Iterator[Command]:
    """Yield the commands that fit into the record; the rest comes with the next run. Placements of pods are not kept:
    they are computed again at every validation.
    """
    left = LARGEST
    for command in commands:
        types = sum(len(one.types) for one in command.replacements)
        room = (left - len(command.reason) - A_TYPE * types) // A_NODE
        nodes = command.nodes if command.replacements else command.nodes[: max(room, 0)]
        if nodes and len(nodes) <= room:
            left -= A_NODE * len(nodes) + A_TYPE * types + len(command.reason)
            yield replace(command, nodes=nodes, placements={})
