"""Chart of a run: the axis of time, the run's marks, a lane per node in its zone, a lane per workload. One SVG;
the glyph of a mark has a shape for each kind and the number that the table explains."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from leeward.cli.report.layout import (
    LEFT,
    MANY_NODES,
    TOTAL,
    WIDTH,
    Cluster,
    Lanes,
    Numbered,
    Scale,
    clock,
    clusters,
    count,
    cut,
    lanes,
    length,
    safe,
    ticks,
)
from leeward.cli.report.record import MarkKind, NodeLane, Phase, RunRecord, Span, WorkloadLane
from leeward.cli.report.style import MARK_COLOURS, PATTERNS

_BAR = 15.0
_NAME_CHARACTERS, _FACT_CHARACTERS = 28, 34
_LABEL_CHARACTER = 6.3  # width of one at 10.5 px, generously
_PAGE = 1100.0  # a taller picture is printed on several pages, a lower one is fitted to one
_PLOT = 46.0  # height of a workload's curve

# The most important kind gives a shared glyph its shape.
_WEIGHT = (MarkKind.FAULT, MarkKind.BLOCKED, MarkKind.EVENT, MarkKind.DECISION)


def chart(record: RunRecord) -> str:
    """Return the whole SVG element."""
    scale, drawn = Scale.of(record), lanes(record)
    body: list[str] = []
    y = 30.0
    for lane, height in _lanes(drawn, scale, low=len(record.nodes) > MANY_NODES):
        body.append(f'<g transform="translate(0 {y:g})">{lane}</g>')
        y += height
    return (
        f'<svg class="chart{" tall" if y > _PAGE else ""}" role="img" aria-label="timeline of nodes and workloads" '
        'xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {TOTAL:g} {y + 26:g}">{PATTERNS}{_axis(scale, y)}{"".join(body)}</svg>'
    )


def _axis(scale: Scale, bottom: float) -> str:
    parts = [f'<text class="tick" x="0" y="18">UTC, {scale.start:%Y-%m-%d}</text>']
    for tick in ticks(scale):
        parts.append(f'<line class="grid" x1="{tick.x}" y1="24" x2="{tick.x}" y2="{bottom + 4:g}"/>')
        for y in (18.0, bottom + 19):
            parts.append(f'<text class="tick" x="{tick.x}" y="{y:g}" text-anchor="middle">{safe(tick.label)}</text>')
    return "".join(parts)


def _lanes(drawn: Lanes, scale: Scale, *, low: bool) -> Iterator[tuple[str, float]]:
    """Yield every lane with its height, from above."""
    if drawn.run:
        yield (
            f'<g class="lane run">{_name("the run", "marks of no single node")}{_marks(drawn.run, scale, 14)}</g>',
            34.0,
        )
    for zone in drawn.zones:
        yield _heading(f"{zone.name or 'no zone'} · {count(len(zone.nodes), 'node')}"), 28.0
        for node, marks in zone.nodes:
            yield _node(node, marks, scale, low=low)
    if drawn.workloads:
        yield _heading("workloads · replicas ready"), 34.0
    for workload, marks in drawn.workloads:
        yield _workload(workload, marks, scale), _PLOT + 26.0


def _heading(text: str) -> str:
    return (
        f'<text class="head" x="0" y="19">{safe(text)}</text><line class="rule" x1="0" x2="{TOTAL:g}" y1="25" y2="25"/>'
    )


def _name(name: str, facts: str) -> str:
    shown = f'<text x="0" y="12">{safe(cut(name, _NAME_CHARACTERS))}</text>'
    below = f'<text class="quiet small" x="0" y="26">{safe(cut(facts, _FACT_CHARACTERS))}</text>' if facts else ""
    return f"<g><title>{safe(name)}{chr(10) if facts else ''}{safe(facts)}</title>{shown}{below}</g>"


def _marks(marks: Sequence[Numbered], scale: Scale, y: float) -> str:
    return "".join(glyph(cluster, y) for cluster in clusters(marks, scale))


def _node(node: NodeLane, marks: Sequence[Numbered], scale: Scale, *, low: bool) -> tuple[str, float]:
    """Draw a node: its marks stand above the bar; many nodes without marks stand close together."""
    facts = " · ".join(word for word in (node.group, node.capacity_type) if word)
    top = 19.0 if marks else (0.0 if low else 7.0)
    bars = "".join(_span(node, span, scale, top) for span in node.spans)
    name = _name(node.name, "" if low and not marks else facts)
    height = top + _BAR + 7 if low and not marks else max(top + _BAR + 8, 36.0)
    return f'<g class="lane node">{name}{bars}{_marks(marks, scale, 9)}</g>', height


def _span(node: NodeLane, span: Span, scale: Scale, top: float) -> str:
    left, right = scale.x(span.begin), scale.x(span.end)
    if not scale.shows(span.begin, span.end):
        return ""
    width = max(right - left, 1.5)
    title = (
        f"{node.name}: {span.phase.value}\n{clock(span.begin)} to {clock(span.end)}, {length(span.end - span.begin)}\n"
        f"{node.instance} · {node.group} · {node.capacity_type} · {node.zone}"
    )
    label = _label(span.phase.value, left, width, top)
    box = f'x="{left}" y="{top:g}" width="{width:.1f}" height="{_BAR:g}"'
    if span.phase is Phase.TERMINATED:
        middle = top + _BAR / 2
        line = f'<line x1="{left + 3}" x2="{left + width:.1f}" y1="{middle:g}" y2="{middle:g}"/>'
        return f'<g class="span gone"><title>{safe(title)}</title><rect {box}/>{line}{label}</g>'
    return (
        f'<g class="span"><title>{safe(title)}</title><rect {box} rx="2" fill="url(#{span.phase.value})"/>{label}</g>'
    )


def _label(word: str, left: float, width: float, top: float) -> str:
    if width < len(word) * _LABEL_CHARACTER + 8:
        return ""
    return f'<text x="{left + 5:g}" y="{top + 11.2:g}">{word}</text>'


def _workload(workload: WorkloadLane, marks: Sequence[Numbered], scale: Scale) -> str:
    minimum = "no budget" if workload.minimum is None else f"PDB minimum {workload.minimum}"
    lowest = "" if workload.lowest is None else f" · lowest {workload.lowest}"
    top = max([workload.desired, workload.minimum or 0, 1, *(sample.ready for sample in workload.samples)])
    base = 14.0 + _PLOT

    def y(replicas: int) -> float:
        return round(base - _PLOT * replicas / top, 1)

    def level(kind: str, height: float) -> str:
        return f'<line class="{kind}" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{height}" y2="{height}"/>'

    steps = _steps(workload, scale)
    numbers = "".join(
        f'<text class="quiet small" text-anchor="end" x="{LEFT - 6}" y="{y(number) + 3.5}">{number}</text>'
        for number in (0, top)
    )
    parts = (
        _name(workload.name, f"desired {workload.desired} · {minimum}{lowest}"),
        numbers,
        level("grid", base),
        _below(workload, scale, y),
        level("desired", y(workload.desired)),
        _curve([(left, right, y(ready)) for left, right, ready, _ in steps], base),
        "" if workload.minimum is None else level("minimum", y(workload.minimum)),
        *(_sample(workload, step, base) for step in steps),
        _marks(marks, scale, base - 10),
    )
    return f'<g class="lane workload">{"".join(parts)}</g>'


def _steps(workload: WorkloadLane, scale: Scale) -> list[tuple[float, float, int, datetime]]:
    """Return (left, right, ready, since) of the samples within the chart."""
    samples = [sample for sample in workload.held if sample.at <= scale.end]
    ends = [later.at for _, later in pairwise(samples)] + [scale.end]
    return [
        (scale.x(sample.at), scale.x(end), sample.ready, sample.at)
        for sample, end in zip(samples, ends, strict=False)
        if end >= scale.start
    ]


def _curve(steps: Sequence[tuple[float, float, float]], base: float) -> str:
    if not steps:
        return ""
    points = " ".join(f"{left},{height} {right},{height}" for left, right, height in steps)
    area = f"{steps[0][0]},{base} {points} {steps[-1][1]},{base}"
    return f'<polygon class="area" points="{area}"/><polyline class="step" points="{points}"/>'


def _below(workload: WorkloadLane, scale: Scale, y: Callable[[int], float]) -> str:
    """Shade where the workload was under its PDB minimum, once it had been up to it."""
    boxes = []
    for left, right, ready, since in _steps(workload, scale):
        if workload.minimum is not None and since in workload.under:
            size = f'width="{max(right - left, 2):.1f}" height="{y(ready) - y(workload.minimum):.1f}"'
            boxes.append(f'<rect class="under" fill="url(#below)" x="{left}" y="{y(workload.minimum)}" {size}/>')
    return "".join(boxes)


def _sample(workload: WorkloadLane, step: tuple[float, float, int, datetime], base: float) -> str:
    left, right, ready, since = step
    minimum = "" if workload.minimum is None else f", PDB minimum {workload.minimum}"
    title = f"{workload.name}: {ready} of {workload.desired} ready{minimum}\nsince {clock(since)}"
    box = f'x="{left}" y="14" width="{max(right - left, 1):.1f}" height="{base - 14:g}"'
    return f'<rect class="sample" {box}><title>{safe(title)}</title></rect>'


def glyph(cluster: Cluster, y: float) -> str:
    """Draw the glyph of a cluster, centred at `y`; it links to its first row in the table."""
    first = cluster.marks[0]
    kind = min((numbered.mark.kind for numbered in cluster.marks), key=_WEIGHT.index)
    more = ""
    if len(cluster.marks) > 1:
        more = f'<text class="more" x="{cluster.x + 9.5}" y="{y + 3.5}">+{len(cluster.marks) - 1}</text>'
    return (
        f'<a class="mark {kind.value}" href="#mark-{first.number}"><title>{_facts(cluster.marks)}</title>'
        f'{shape(kind, cluster.x, y)}<text x="{cluster.x}" y="{y + 3.4}">{first.number}</text>{more}</a>'
    )


def shape(kind: MarkKind, x: float, y: float) -> str:
    """Draw a circle, square, triangle or diamond: shapes can be distinguished without colour."""
    fill = f'class="shape" fill="{MARK_COLOURS[kind]}"'
    match kind:
        case MarkKind.EVENT:
            return f'<circle {fill} cx="{x}" cy="{y}" r="8"/>'
        case MarkKind.BLOCKED:
            return f'<rect {fill} x="{x - 7.5}" y="{y - 7.5}" width="15" height="15" rx="1.5"/>'
        case MarkKind.FAULT:
            return f'<path {fill} d="M{x} {y - 10}L{x + 10.5} {y + 7.5}H{x - 10.5}Z"/>'
        case MarkKind.DECISION:
            return f'<path {fill} d="M{x} {y - 10.5}L{x + 11} {y}L{x} {y + 10.5}L{x - 11} {y}Z"/>'


def _facts(marks: tuple[Numbered, ...]) -> str:
    lines = [f"{n.number}. {clock(n.mark.at)} {n.mark.kind.value}: {n.mark.text}" for n in marks]
    return safe("\n".join(lines))
