"""Layout of the page: the scale of time, its ticks, the order of lanes, marks that would cover each other.

Pure geometry without colours and elements. Places are percentages of a track, so that one page fits every width; what
depends on the width (how many ticks, which marks share a glyph) is laid out twice, for WIDE and for NARROW tracks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby

from leeward.cli.report.record import Mark, NodeLane, RunRecord, WorkloadLane

WIDE, NARROW = 700.0, 312.0  # pixels that a track has at least beside its name, and under it on a phone
LARGE = 960.0  # on a large screen
MARK_GAP = 33.0  # pixels; marks nearer than this share one glyph
MANY_NODES = 40  # from here on lanes are low
TICK_SPACE = 68.0  # pixels of a label with its margin
_STEPS = (
    *(timedelta(milliseconds=ms) for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=s) for s in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=m) for m in (1, 2, 5, 10, 15, 30)),
    *(timedelta(hours=h) for h in (1, 2, 3, 6, 12)),
    *(timedelta(days=d) for d in (1, 2, 7, 14, 30, 90, 365)),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Scale from time to a percentage of the track. A run without length is drawn as one second."""

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
        """Return the place of a moment, 0 to 100; a moment outside of the run stands at its edge."""
        share = (at - self.start) / (self.end - self.start)
        return round(100 * min(max(share, 0.0), 1.0), 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Labelled line of the time axis, at a percentage of the track."""

    x: float
    label: str


def ticks(scale: Scale, width: float) -> tuple[Tick, ...]:
    """Return round moments in UTC, as many as have space for their labels on a track of that many pixels."""
    length, most = scale.end - scale.start, int(width // TICK_SPACE)
    step = next((step for step in _STEPS if length / step <= most), None)
    if step is None:  # longer than ten years
        step = timedelta(days=365) * (int(length / timedelta(days=365) / most) + 1)
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
    """Marks of one lane that would cover each other; `x` is the first one's, a percentage. `flipped`: the number of the
    others stands left of the glyph, because right of it the track ends.
    """

    x: float
    marks: tuple[Numbered, ...]
    flipped: bool = False


def clusters(marks: Sequence[Numbered], scale: Scale, width: float) -> tuple[Cluster, ...]:
    """Return the clusters in the order of time, for a track of that many pixels."""
    found: list[list[Numbered]] = []
    for numbered in marks:
        if found and _pixels(found[-1][0], numbered, scale, width) < _reach(found[-1]):
            found[-1].append(numbered)
        else:
            found.append([numbered])
    while len(found) > 1 and _is_flipped(found[-1], scale, width) and not _has_space(found, scale, width):
        last = found.pop()
        found[-1] += last
    return tuple(
        Cluster(x=scale.x(group[0].mark.at), marks=tuple(group), flipped=_is_flipped(group, scale, width))
        for group in found
    )


def _pixels(one: Numbered, other: Numbered, scale: Scale, width: float) -> float:
    return (scale.x(other.mark.at) - scale.x(one.mark.at)) * width / 100


def _reach(group: Sequence[Numbered]) -> float:
    """Return the pixels from the glyph to the next one: three digits are wider, and "+2" stands beside it."""
    return MARK_GAP + (10.0 if group[-1].number > 99 else 0.0) + _beside(group)


def _beside(group: Sequence[Numbered]) -> float:
    return 0.0 if len(group) == 1 else 14.0 + 8.0 * len(str(len(group) - 1))


def _is_flipped(group: Sequence[Numbered], scale: Scale, width: float) -> bool:
    left = (100 - scale.x(group[0].mark.at)) * width / 100
    return len(group) > 1 and left < MARK_GAP / 2 + _beside(group)


def _has_space(found: Sequence[Sequence[Numbered]], scale: Scale, width: float) -> bool:
    gap = _pixels(found[-2][0], found[-1][0], scale, width)
    return gap >= _reach(found[-2]) + _beside(found[-1])


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
    """Yield the marks with their numbers, from 1; steps of Leeward itself have none and are not drawn."""
    for number, mark in enumerate((mark for mark in record.marks if not mark.internal), start=1):
        yield Numbered(number=number, mark=mark)


def _first(node: NodeLane, record: RunRecord) -> datetime:
    return min((span.begin for span in node.spans), default=record.end)


def _node_of(mark: Mark, nodes: Sequence[NodeLane]) -> NodeLane | None:
    """Return the node by name; of several with one name, the one that had begun last by then."""
    named = [node for node in nodes if node.name == mark.node]
    begun = [node for node in named if any(span.begin <= mark.at for span in node.spans)]
    latest = max(begun, key=lambda node: max(s.begin for s in node.spans if s.begin <= mark.at), default=None)
    return latest or next(iter(named), None)
