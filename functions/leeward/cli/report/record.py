"""Record of a run, as `docs/schema/run-record.json` describes it, checked once when it is read.

Decides what a record may contain; the page decides what is drawn of it, and how."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from leeward.cli.report.reader import Reader
from leeward.errors import InvalidInputError
from leeward.model.times import format_instant

VERSION = 1


class Source(StrEnum):
    """Place where the run took place."""

    SIMULATION = "simulation"
    LOCAL = "local"
    EXECUTION = "execution"


class Phase(StrEnum):
    """Phases of a node, in this order; most nodes skip some."""

    LAUNCHING = "launching"
    READY = "ready"
    CORDONED = "cordoned"
    DRAINING = "draining"
    SETTLING = "settling"
    TERMINATED = "terminated"


class MarkKind(StrEnum):
    """Kinds of marks. `event`: external. `blocked`: not now. `fault`: injected or found. `decision`: Leeward's."""

    EVENT = "event"
    BLOCKED = "blocked"
    FAULT = "fault"
    DECISION = "decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Phase of a node from `begin` until `end`."""

    phase: Phase
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLane:
    """One node; two nodes may have the same name one after the other, as addresses are reused."""

    name: str
    instance: str
    group: str
    zone: str
    capacity_type: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Number of replicas that are ready from `at` until the next sample."""

    at: datetime
    ready: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadLane:
    """One workload; `minimum` is the least that its PodDisruptionBudget wants healthy, None without one. `until`: the
    last moment at which it was observed, where that was only now and then; None: it was watched from its start on.
    """

    name: str
    desired: int
    minimum: int | None
    samples: tuple[Sample, ...]
    until: datetime | None = None

    @property
    def held(self) -> tuple[Sample, ...]:
        """Samples that held for a while: the last of several at one moment."""
        last = {sample.at: sample for sample in self.samples}
        return tuple(last.values())

    @property
    def lowest(self) -> int | None:
        """Fewest ready replicas after all had come up; None when they never did. Observations now and then are of a
        workload that was up before.
        """
        return min((sample.ready for sample in self._since(self.desired)), default=None)

    @property
    def under(self) -> frozenset[datetime]:
        """Times of the samples below its PDB minimum; a workload that has not yet come up to it does not count."""
        minimum = self.minimum or 0
        return frozenset(sample.at for sample in self._since(minimum) if sample.ready < minimum)

    def _since(self, ready: int) -> tuple[Sample, ...]:
        if self.until is not None:
            return self.held
        first = next((index for index, sample in enumerate(self.held) if sample.ready >= ready), None)
        return () if first is None else self.held[first:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Notable moment, at a node, a workload, or the run as a whole. `internal`: a step of Leeward itself, which the
    page lists apart.
    """

    at: datetime
    kind: MarkKind
    text: str
    node: str | None = None
    workload: str | None = None
    internal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run from `start` to `end`. Marks are in the order of time; the page numbers them so. `about`: what was run
    and how it ended; `headline`: cause and effect in a sentence, empty: the page counts; `notes`: sentences on what the
    record does not show, and why.
    """

    source: Source
    start: datetime
    end: datetime
    nodes: tuple[NodeLane, ...] = ()
    workloads: tuple[WorkloadLane, ...] = ()
    marks: tuple[Mark, ...] = ()
    about: str = ""
    headline: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, document: Any) -> "RunRecord":
        """Read parsed JSON. Raises InvalidInputError naming the path, what was found and what was expected."""
        top = Reader(path="", value=document)
        top.has_only(
            "version", "source", "start", "end", "nodes", "workloads", "marks", may=("about", "headline", "notes")
        )
        version = top["version"].count()
        if version != VERSION:
            raise InvalidInputError(f"version: found {version}, expected {VERSION}")
        start, end = _interval(top, "start", "end")
        return cls(
            source=Source(top["source"].one_of(Source)),
            start=start,
            end=end,
            nodes=tuple(_node(entry) for entry in top["nodes"].entries()),
            workloads=tuple(_workload(entry) for entry in top["workloads"].entries()),
            marks=tuple(sorted((_mark(entry) for entry in top["marks"].entries()), key=lambda mark: mark.at)),
            about=top["about"].text() if top.holds("about") else "",
            headline=top["headline"].text() if top.holds("headline") else "",
            notes=tuple(entry.text() for entry in top["notes"].entries()) if top.holds("notes") else (),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document, as `from_json` takes it; times to the millisecond."""
        optional = {"about": self.about, "headline": self.headline, "notes": list(self.notes)}
        return {
            "version": VERSION,
            "source": self.source.value,
            "start": format_instant(self.start),
            "end": format_instant(self.end),
            "nodes": [_node_json(node) for node in self.nodes],
            "workloads": [_workload_json(workload) for workload in self.workloads],
            "marks": [_mark_json(mark) for mark in self.marks],
            **{name: value for name, value in optional.items() if value},
        }


def _interval(reader: Reader, first: str, last: str) -> tuple[datetime, datetime]:
    begin, end = reader[first].instant(), reader[last].instant()
    if end < begin:
        found = f"{reader[last].path}: found {format_instant(end)}"
        raise InvalidInputError(f"{found}, expected a time not before {first} ({format_instant(begin)})")
    return begin, end


def _node(reader: Reader) -> NodeLane:
    reader.has_only("name", "instance", "group", "zone", "capacityType", "spans")
    return NodeLane(
        name=reader["name"].name(),
        instance=reader["instance"].text(),
        group=reader["group"].text(),
        zone=reader["zone"].text(),
        capacity_type=reader["capacityType"].text(),
        spans=tuple(_span(entry) for entry in reader["spans"].entries()),
    )


def _span(reader: Reader) -> Span:
    reader.has_only("phase", "from", "to")
    begin, end = _interval(reader, "from", "to")
    return Span(phase=Phase(reader["phase"].one_of(Phase)), begin=begin, end=end)


def _workload(reader: Reader) -> WorkloadLane:
    reader.has_only("name", "desired", "minimum", "samples", may=("until",))
    samples: list[Sample] = []
    for entry in reader["samples"].entries():
        entry.has_only("at", "ready")
        sample = Sample(at=entry["at"].instant(), ready=entry["ready"].count())
        if samples and sample.at < samples[-1].at:
            found = f"{entry['at'].path}: found {format_instant(sample.at)}"
            raise InvalidInputError(f"{found}, expected a time not before the sample before it")
        samples.append(sample)
    minimum = reader["minimum"]
    return WorkloadLane(
        name=reader["name"].name(),
        desired=reader["desired"].count(),
        minimum=None if minimum.value is None else minimum.count(),
        samples=tuple(samples),
        until=reader["until"].instant() if reader.holds("until") else None,
    )


def _mark(reader: Reader) -> Mark:
    reader.has_only("at", "node", "workload", "kind", "text", may=("internal",))
    node, workload = reader["node"], reader["workload"]
    return Mark(
        at=reader["at"].instant(),
        kind=MarkKind(reader["kind"].one_of(MarkKind)),
        text=reader["text"].text(),
        node=None if node.value is None else node.name(),
        workload=None if workload.value is None else workload.name(),
        internal=reader.holds("internal") and reader["internal"].truth(),
    )


def _node_json(node: NodeLane) -> Mapping[str, Any]:
    return {
        "name": node.name,
        "instance": node.instance,
        "group": node.group,
        "zone": node.zone,
        "capacityType": node.capacity_type,
        "spans": [
            {"phase": span.phase.value, "from": format_instant(span.begin), "to": format_instant(span.end)}
            for span in node.spans
        ],
    }


def _workload_json(workload: WorkloadLane) -> Mapping[str, Any]:
    samples = [{"at": format_instant(sample.at), "ready": sample.ready} for sample in workload.samples]
    until = {} if workload.until is None else {"until": format_instant(workload.until)}
    return {
        "name": workload.name,
        "desired": workload.desired,
        "minimum": workload.minimum,
        "samples": samples,
        **until,
    }


def _mark_json(mark: Mark) -> Mapping[str, Any]:
    return {
        "at": format_instant(mark.at),
        "node": mark.node,
        "workload": mark.workload,
        "kind": mark.kind.value,
        "text": mark.text,
        **({"internal": True} if mark.internal else {}),
    }
