"""Run record of a simulated run (docs/schema/run-record.json), for `leeward report`.

It watches a world and changes nothing: with and without it a seed has the same history. Phases of nodes come from EC2,
the cluster and the termination records; ready replicas from the cluster's writes; marks from the story."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from leeward.cli.report.record import Mark, MarkKind, NodeLane, Phase, RunRecord, Sample, Source, Span, WorkloadLane
from leeward.model.termination import Status, detach_deadline
from leeward.model.times import format_instant
from local.cluster.objects import Obj, controller_of, is_deleting, is_ready, name_of, namespace_of, uid_of
from local.cluster.pdb_minimum import minimum_of
from local.cluster.store import Change, ChangeType
from simulation.aws.compute import SimInstance
from simulation.convergence import is_tainted
from simulation.world import WARM_UP, World

BEFORE, AFTER = 30.0, 600.0  # seconds shown before the first arrival can come and after the last one has
INSTANCE = re.compile(r"i-[0-9a-f]{17}")
FAULTS = ("killed ", "Error: ", "Lambda.Unknown", "does not answer", "no capacity", "timed out", "VIOLATION")
OURS = ("terminate ", "drain ", "reconciler", "sync", "execution ")
CHOICES = ("terminate claim ", "drain replace ")  # decisions that no phase of a node shows
ECHOES = ("event EC2 Instance State-change ", "event EC2 Instance-terminate ", "event EC2 Instance-launch ")
UNANSWERED = ": wait: waiting for an answer"
WORKLOADS = ("deployments", "statefulsets")


@dataclass(slots=True, kw_only=True)
class _Lane:
    """Lane of one instance; its phases with the moments at which they began."""

    member: SimInstance
    phases: list[tuple[Phase, float]] = field(default_factory=list)

    @property
    def phase(self) -> Phase | None:
        return self.phases[-1][0] if self.phases else None


class Recorder:
    """Recorder that attaches to a world before it runs for `hours`; call `record` afterwards. Of two clusters it shows
    the first.
    """

    def __init__(self, world: World, hours: float) -> None:
        self._world = world
        first = world.now + WARM_UP
        self._begin, self._end = first - BEFORE, first + hours * 3600 + AFTER
        self._lanes: dict[str, _Lane] = {}
        self._ready: dict[str, set[str]] = {}
        self._samples: dict[str, list[Sample]] = {}
        self._marks: list[Mark] = []
        self._said: dict[str, str] = {}
        world.cluster.observe(self._changed)
        world.heard, world.seen = self._heard, self._seen

    def record(self) -> RunRecord:
        """Return the record, from shortly before the first arrival until ten minutes after the last."""
        return RunRecord(
            source=Source.SIMULATION,
            start=_instant(self._begin),
            end=_instant(self._end),
            nodes=tuple(self._node(lane) for lane in self._lanes.values()),
            workloads=tuple(self._workloads()),
            marks=tuple(self._marks),
        )

    def _seen(self) -> None:
        """Record the phases after every event."""
        if self._world.now > self._end:
            return
        for name, member in self._world.scenes[0].fleet.instances.items():
            lane = self._lanes.get(name) or self._lanes.setdefault(name, _Lane(member=member))
            if lane.phase is not Phase.TERMINATED:
                phase = self._phase(lane)
                if phase is not lane.phase:
                    begun = member.launched if phase is Phase.LAUNCHING else self._world.now
                    lane.phases.append((phase, begun))

    def _phase(self, lane: _Lane) -> Phase:
        """Return the lane's phase. A missing node keeps its phase: an operator deleted it, or its kubelet has yet to
        register it.
        """
        if lane.member.gone:
            return Phase.TERMINATED
        record = self._world.records.get(lane.member.id)
        if record is not None and record.status is Status.OPEN and "draining" in record.times:
            return Phase.SETTLING if "drained" in record.times else Phase.DRAINING
        node = self._world.cluster.store.find("nodes", lane.member.node)
        if node is None:
            return lane.phase or Phase.LAUNCHING
        if is_tainted(node) or node["spec"].get("unschedulable"):
            return Phase.CORDONED
        return Phase.READY if is_ready(node) else lane.phase or Phase.LAUNCHING

    def _node(self, lane: _Lane) -> NodeLane:
        moments = [at for _, at in lane.phases[1:]] + [max(self._end, lane.phases[-1][1])]
        spans = (
            Span(phase=phase, begin=_instant(at), end=_instant(until))
            for (phase, at), until in zip(lane.phases, moments, strict=True)
        )
        member = lane.member
        return NodeLane(
            name=member.node,
            instance=member.id,
            group=member.group,
            zone=member.zone,
            capacity_type="spot" if member.spot else "on-demand",
            spans=tuple(spans),
        )

    def _changed(self, change: Change) -> None:
        """Count ready pods; runs inside a write, so it does nothing else. A pod that is being deleted is
        ready no more.
        """
        if change.resource != "pods" or self._world.now > self._end:
            return
        uid, workload = uid_of(change.obj), self._workload_of(change.obj)
        if workload is None:
            return
        ready = self._ready.setdefault(workload, set())
        is_there = change.type is not ChangeType.DELETED and is_ready(change.obj) and not is_deleting(change.obj)
        if is_there is not (uid in ready):
            ready.symmetric_difference_update({uid})
            samples = self._samples.setdefault(workload, [])
            samples.append(Sample(at=_instant(self._world.now), ready=len(ready)))

    def _workload_of(self, pod: Obj) -> str | None:
        owner, namespace = controller_of(pod), namespace_of(pod) or "default"
        if owner is not None and owner["kind"] == "ReplicaSet":
            replica_set = self._world.cluster.store.find("replicasets", owner["name"], namespace)
            owner = None if replica_set is None else controller_of(replica_set)
        kept = owner is not None and owner["kind"] in {"Deployment", "StatefulSet"}
        return _lane_name(namespace, str(owner["name"])) if owner is not None and kept else None

    def _workloads(self) -> Iterator[WorkloadLane]:
        store = self._world.cluster.store
        for workload in (found for kind in WORKLOADS for found in store.sorted(kind)):
            namespace = namespace_of(workload) or "default"
            name = _lane_name(namespace, name_of(workload))
            budgets = [b for b in store.each("poddisruptionbudgets") if namespace_of(b) == namespace]
            labels = workload["spec"]["template"]["metadata"].get("labels") or {}
            yield WorkloadLane(
                name=name,
                desired=int(workload["spec"].get("replicas", 1)),
                minimum=minimum_of(budgets, labels),
                samples=tuple(self._samples.get(name, ())),
            )

    def _heard(self, line: str) -> None:
        """Add a line of the story; a repeated line about an instance is added once."""
        found = INSTANCE.search(line)
        about = found.group() if found else ""
        kind = kind_of(line)
        if kind is None or not self._begin <= self._world.now <= self._end or self._said.get(about) == line:
            return
        self._said[about] = line
        there = self._world.scenes[0].fleet.instances.get(about)
        node = there.node if there is not None else None
        text = f"{line}{self._waited_for(about)}" if kind is MarkKind.BLOCKED else line
        inner = is_internal(line, kind)
        self._marks.append(Mark(at=_instant(self._world.now), kind=kind, text=text, node=node, internal=inner))

    def _waited_for(self, instance: str) -> str:
        """Return until when at the latest the drain waits for the blocking pods."""
        record = self._world.claims.records.get(instance)
        until = record.times.get("until") if record else None
        ends = [
            moment
            for moment in (until, detach_deadline(record, _instant(self._world.now)) if record else None)
            if moment is not None
        ]
        return f", waited for until {format_instant(min(ends))} at the latest" if ends else ""


def kind_of(line: str) -> MarkKind | None:
    """Return the kind of a line of the story, None for a step that only waits."""
    if UNANSWERED in line or any(word in line for word in FAULTS):
        return MarkKind.FAULT
    if ": wait: " in line:
        return MarkKind.BLOCKED if "pdb " in line else None
    return MarkKind.DECISION if line.startswith(OURS) else MarkKind.EVENT


def is_internal(line: str, kind: MarkKind) -> bool:
    """Return whether the line is a step of Leeward that the phases of its node show, or the echo of one."""
    if kind is MarkKind.DECISION:
        return not line.startswith(CHOICES)
    return kind is MarkKind.EVENT and line.startswith(ECHOES)


def _lane_name(namespace: str, name: str) -> str:
    return name if namespace == "default" else f"{namespace}/{name}"


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
