"""Layout of the page: the scale of time, its ticks, the order of lanes, marks that would cover each other, and its
texts: cut, escaped, times and lengths as people read them.

Pure geometry in SVG units, without colours and elements."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from itertools import groupby

from leeward.cli.report.record import Mark, NodeLane, RunRecord, WorkloadLane
from leeward.model.times import format_instant

LEFT, WIDTH, RIGHT = 236.0, 980.0, 24.0  # the names' column, the chart, the margin
TOTAL = LEFT + WIDTH + RIGHT
MARK_GAP = 15.0  # marks nearer than this share one glyph
MANY_NODES = 40  # from here on lanes are low
TICKS = 10
_STEPS = (
    *(timedelta(milliseconds=ms) for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=s) for s in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=h) for h in (1, 2, 3, 6, 12)),
    *(timedelta(days=d) for d in (1, 2, 7, 14, 30, 90, 365)),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scale from time to x. A run without length is drawn as one second."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, record: RunRecord) -> "Scale":
        """Return the scale on which all of the run fits."""
        seconds = max((record.end - record.start).total_seconds(), 0.0)
        if seconds:
            return cls(start=record.start, end=record.end)
        latest = datetime.max.replace(tzinfo=UTC) - timedelta(seconds=1)
        start = min(record.start, latest)
        return cls(start=start, end=start + timedelta(seconds=1))

    def shows(self, begin: datetime, end: datetime) -> bool:
        """Return whether part of it is within the run; a moment at the edge is, a longer period ending there is not."""
        return begin <= self.end and end >= self.start and (end > self.start or begin == end)

    def x(self, at: datetime) -> float:
        """Return the x of a moment; a moment outside of the run stands at its edge."""
        share = (at - self.start) / (self.end - self.start)
        return round(LEFT + WIDTH * min(max(share, 0.0), 1.0), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Labelled line of the time axis."""

    x: float
    label: str


def ticks(scale: Scale) -> tuple[Tick, ...]:
    """Return at most TICKS + 1 round moments, in UTC."""
    length = scale.end - scale.start
    step = next((step for step in _STEPS if length / step <= TICKS), None)
    if step is None:  # longer than ten years
        step = timedelta(days=365) * (int(length / timedelta(days=365) / TICKS) + 1)
    number = -(-(scale.start - _EPOCH) // step)
    moments = []
    while (offset := number * step) <= scale.end - _EPOCH:
        moments.append(_EPOCH + offset)
        number += 1
    return tuple(Tick(x=scale.x(at), label=_label(at, step)) for at in moments)


def _label(at: datetime, step: timedelta) -> str:
    if step >= timedelta(days=1):
        return at.strftime("%Y-%m-%d")
    if step >= timedelta(minutes=1):
        midnight = at.hour == at.minute == 0
        return at.strftime("%d %b") if midnight else at.strftime("%H:%M")
    if step >= timedelta(seconds=1):
        return at.strftime("%H:%M:%S")
    return at.strftime("%H:%M:%S.") + f"{at.microsecond // 1000:03d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """Mark with the number that the page and its table give it."""

    number: int
    mark: Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Marks of one lane that would cover each other; `x` is the first one's."""

    x: float
    marks: tuple[Numbered, ...]


def clusters(marks: Sequence[Numbered], scale: Scale) -> tuple[Cluster, ...]:
    """Return the clusters in the order of time. Each cluster is wide enough for its label."""
    found: list[list[Numbered]] = []
    for numbered in marks:
        if found and scale.x(numbered.mark.at) - scale.x(found[-1][0].mark.at) < _reach(found[-1]):
            found[-1].append(numbered)
        else:
            found.append([numbered])
    return tuple(Cluster(x=scale.x(group[0].mark.at), marks=tuple(group)) for group in found)


def _reach(group: Sequence[Numbered]) -> float:
    return MARK_GAP if len(group) == 1 else MARK_GAP + 14.0  # space for "+2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """Nodes of one zone with the marks of each, in the order in which they are drawn."""

    name: str
    nodes: tuple[tuple[NodeLane, tuple[Numbered, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Every object that gets a lane. `run` are marks that no node and no workload of the record takes."""

    run: tuple[Numbered, ...]
    zones: tuple[Zone, ...]
    workloads: tuple[tuple[WorkloadLane, tuple[Numbered, ...]], ...]


def lanes(record: RunRecord) -> Lanes:
    """Put every mark in exactly one lane: its node's, else its workload's, else the run's."""
    nodes = sorted(record.nodes, key=lambda node: (node.zone, node.group, _first(node, record), node.name))
    of_node: dict[int, list[Numbered]] = {id(node): [] for node in nodes}
    of_workload: dict[str, list[Numbered]] = {workload.name: [] for workload in record.workloads}
    run: list[Numbered] = []
    for numbered in numbered_marks(record):
        node = _node_of(numbered.mark, nodes)
        if node is not None:
            of_node[id(node)].append(numbered)
        else:
            of_workload.get(numbered.mark.workload or "", run).append(numbered)
    zones = tuple(
        Zone(name=name, nodes=tuple((node, tuple(of_node[id(node)])) for node in members))
        for name, members in groupby(nodes, key=lambda node: node.zone)
    )
    drawn = tuple((workload, tuple(of_workload.pop(workload.name, ()))) for workload in record.workloads)
    return Lanes(run=tuple(run), zones=zones, workloads=drawn)


def numbered_marks(record: RunRecord) -> Iterator[Numbered]:
    """Yield the marks with their numbers, from 1."""
    for number, mark in enumerate(record.marks, start=1):
        yield Numbered(number=number, mark=mark)


def _first(node: NodeLane, record: RunRecord) -> datetime:
    return min((span.begin for span in node.spans), default=record.end)


def _node_of(mark: Mark, nodes: Sequence[NodeLane]) -> NodeLane | None:
    """Return the node by name; of several with one name, the one that had begun last by then."""
    named = [node for node in nodes if node.name == mark.node]
    begun = [node for node in named if any(span.begin <= mark.at for span in node.spans)]
    latest = max(begun, key=lambda node: max(s.begin for s in node.spans if s.begin <= mark.at), default=None)
    return latest or next(iter(named), None)


def safe(text: str) -> str:
    """Escape text for HTML, in tags or attributes; characters that no page can hold become a replacement character."""
    return escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)


def cut(text: str, most: int) -> str:
    """Cut text to at most `most` characters, with an ellipsis in the middle: names differ at both ends."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def length(span: timedelta) -> str:
    """Format a length such as 3.2 s, 4 min 05 s, 2 h 10 min, 3 d 04 h."""
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600:02d} h"


def day(at: datetime) -> str:
    """Format the date."""
    return format_instant(at)[:10]


def clock(at: datetime) -> str:
    """Format the time of day in UTC, to the millisecond where there is one."""
    return format_instant(at)[11:-1]


def moment(at: datetime) -> str:
    """Format date and time of day."""
    return f"{day(at)} {clock(at)}"


def count(number: int, noun: str) -> str:
    """Format a count such as `1 node`, `3 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
