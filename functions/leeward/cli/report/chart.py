"""Chart of a run: the axis of time, the run's marks, a lane per node in its zone, a lane per workload.

Each lane is a name and a track, an SVG whose places are percentages: beside each other on a screen, one above the other
on a phone. Ticks and glyphs are drawn for both; the style sheet shows one."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import pairwise

from leeward.cli.report.glyphs import glyph
from leeward.cli.report.layout import LARGE, MANY_NODES, NARROW, WIDE, Lanes, Numbered, Scale, clusters, lanes, ticks
from leeward.cli.report.record import NodeLane, Phase, RunRecord, Span, WorkloadLane
from leeward.cli.report.style import PATTERNS
from leeward.cli.report.texts import ReportClock, count, day, length, safe

_BAR = 18.0
_LABEL_CHARACTER = 7.4  # pixels of one at 12 px, generously
_PLOT = 48.0  # height of a workload's curve
_STEADY = 20.0  # of one that did not change
_MARKS = 28.0  # height of the row of marks above a bar
_SIZES = (("wide", WIDE), ("narrow", NARROW))


def chart(record: RunRecord) -> str:
    """Return the whole chart."""
    scale = Scale.of(record)
    low = len(record.nodes) > MANY_NODES
    body = "".join(_lanes(lanes(record), scale, ReportClock.of(record), low=low))
    return (
        f'<div class="chart" role="group" aria-label="timeline of nodes and workloads">{PATTERNS}{_axis(scale)}'
        f'<div class="lines" aria-hidden="true">{_grid(scale)}</div>{body}{_axis(scale, " last")}</div>'
    )


def _axis(scale: Scale, kind: str = "") -> str:
    labels = "".join(
        f'<svg class="{size} tick" width="100%" height="16">'
        + "".join(f'<text x="{t.x:g}%" y="12" text-anchor="{_anchor(t.x)}">{safe(t.label)}</text>' for t in drawn)
        + "</svg>"
        for size, width in _SIZES
        if (drawn := ticks(scale, width))
    )
    return (
        f'<div class="axis{kind}"><div class="name"><span>UTC, {day(scale.start)}</span></div><div>{labels}</div></div>'
    )


def _anchor(x: float) -> str:
    return "start" if x < 4 else "end" if x > 96 else "middle"


def _grid(scale: Scale) -> str:
    return "".join(
        f'<svg class="{size}">'
        + "".join(f'<line class="grid" x1="{t.x:g}%" x2="{t.x:g}%" y1="0" y2="100%"/>' for t in ticks(scale, width))
        + "</svg>"
        for size, width in _SIZES
    )


def _lanes(drawn: Lanes, scale: Scale, times: ReportClock, *, low: bool) -> Iterator[str]:
    """Yield every lane, from above."""
    if drawn.run:
        yield _lane("run", "the run", "", _track(30, _marks(drawn.run, scale, 15, times)))
    for zone in drawn.zones:
        yield f"<h3>{safe(zone.name or 'no zone')} · {count(len(zone.nodes), 'node')}</h3>"
        for node, marks in zone.nodes:
            yield _node(node, marks, scale, times, low=low)
    if drawn.workloads:
        yield "<h3>workloads · replicas ready</h3>"
    for workload, marks in drawn.workloads:
        yield _workload(workload, marks, scale, times)


def _lane(kind: str, name: str, facts: str, track: str) -> str:
    below = f"<span>{safe(facts)}</span>" if facts else ""
    return f'<div class="lane {kind}"><div class="name"><b>{safe(name)}</b>{below}</div>{track}</div>'


def _track(height: float, inner: str) -> str:
    return f'<svg class="track" width="100%" height="{height:g}">{inner}</svg>'


def _marks(marks: Sequence[Numbered], scale: Scale, y: float, times: ReportClock) -> str:
    if not marks:
        return ""
    return "".join(
        f'<g class="{size}">{"".join(glyph(cluster, y, times) for cluster in clusters(marks, scale, width))}</g>'
        for size, width in _SIZES
    )


def _node(node: NodeLane, marks: Sequence[Numbered], scale: Scale, times: ReportClock, *, low: bool) -> str:
    """Draw a node: its marks stand above the bar; many nodes without marks stand close together."""
    top = _MARKS if marks else 0.0
    bars = "".join(_span(node, span, scale, top, times) for span in node.spans)
    track = _track(top + _BAR, f"{bars}{_marks(marks, scale, 13, times)}")
    close = low and not marks
    facts = "" if close else " · ".join(word for word in (node.group, node.capacity_type) if word)
    return _lane("node low" if close else "node", node.name, facts, track)


def _span(node: NodeLane, span: Span, scale: Scale, top: float, times: ReportClock) -> str:
    left, right = scale.x(span.begin), scale.x(span.end)
    if not scale.shows(span.begin, span.end):
        return ""
    width = max(right - left, 0.15)
    title = (
        f"{node.name}: {span.phase.value}\n{times.moment(span.begin)} to {times.moment(span.end)}, "
        f"{length(span.end - span.begin)}\n{node.instance} · {node.group} · {node.capacity_type} · {node.zone}"
    )
    label = _label(span.phase.value, left, width, top)
    box = f'x="{left:g}%" y="{top:g}" width="{width:g}%" height="{_BAR:g}"'
    if span.phase is Phase.TERMINATED:
        middle = top + _BAR / 2
        line = f'<line x1="{left:g}%" x2="{left + width:g}%" y1="{middle:g}" y2="{middle:g}"/>'
        return f'<g class="span gone"><title>{safe(title)}</title><rect {box}/>{line}{label}</g>'
    return (
        f'<g class="span"><title>{safe(title)}</title><rect {box} rx="2" fill="url(#{span.phase.value})"/>{label}</g>'
    )


def _label(word: str, left: float, width: float, top: float) -> str:
    """Label a bar in every layout whose track has the space for it."""
    needed = len(word) * _LABEL_CHARACTER + 8
    sizes = ((NARROW, ""), (WIDE, ' class="wide"'), (LARGE, ' class="large"'))
    shown = next((kind for pixels, kind in sizes if width * pixels / 100 >= needed), None)
    return "" if shown is None else f'<text{shown} x="{left:g}%" dx="5" y="{top + 13.2:g}">{word}</text>'


def _workload(workload: WorkloadLane, marks: Sequence[Numbered], scale: Scale, times: ReportClock) -> str:
    """Draw the curve of a workload; one that never changed and has no marks is low and has no labels."""
    steps = _steps(workload, scale)
    steady = not marks and len({ready for _, _, ready, _ in steps}) == 1
    plot, above = (_STEADY, 2.0) if steady else (_PLOT, 8.0)
    top = max([workload.desired, workload.minimum or 0, 1, *(sample.ready for sample in workload.samples)])
    base = above + plot

    def y(replicas: int) -> float:
        return round(base - plot * replicas / top, 1)

    parts = (
        *(_area(workload, step, y, base, times) for step in steps),
        _level("grid", base),
        _below(workload, steps, y),
        _level("desired", y(workload.desired)),
        _curve([(left, right, y(ready)) for left, right, ready, _ in steps]),
        "" if workload.minimum is None else _level("minimum", y(workload.minimum)),
        "" if steady else _labels(workload.minimum, top, y, base),
        _marks(marks, scale, base - 13, times),
    )
    return _lane("workload", workload.name, _facts(workload, steady=steady), _track(base + 4, "".join(parts)))


def _facts(workload: WorkloadLane, *, steady: bool) -> str:
    minimum = "no PDB" if workload.minimum is None else f"PDB minimum {workload.minimum}"
    if workload.lowest is None:
        return minimum
    lowest = f"{workload.lowest} of {workload.desired}"
    always = "throughout" if workload.until is None else "at every look"
    return f"{lowest} {always} · {minimum}" if steady else f"lowest {lowest} · {minimum}"


def _level(kind: str, height: float) -> str:
    return f'<line class="{kind}" x1="0" x2="100%" y1="{height:g}" y2="{height:g}"/>'


def _labels(minimum: int | None, top: int, y: Callable[[int], float], base: float) -> str:
    """Label the top of the scale, and the minimum under its line, or above it where that is at the bottom."""
    highest = f'<text class="level" x="3" y="{y(top) + 14:g}">{top}</text>'
    if minimum is None:
        return highest
    height = y(minimum) + (14 if y(minimum) + 15 < base else -4)
    return f'{highest}<text class="level floor" x="100%" dx="-3" y="{height:g}" text-anchor="end">min {minimum}</text>'


_Step = tuple[float, float, int, datetime]


def _steps(workload: WorkloadLane, scale: Scale) -> list[_Step]:
    """Return (left, right, ready, since) of the samples within the chart."""
    last = scale.end if workload.until is None else min(workload.until, scale.end)
    samples = [sample for sample in workload.held if sample.at <= last]
    ends = [later.at for _, later in pairwise(samples)] + [last]
    return [
        (scale.x(sample.at), scale.x(end), sample.ready, sample.at)
        for sample, end in zip(samples, ends, strict=False)
        if end >= scale.start
    ]


def _curve(steps: Sequence[tuple[float, float, float]]) -> str:
    """Draw a line for each time that the number held, and one for each change."""
    flat = "".join(f'<line x1="{left:g}%" x2="{right:g}%" y1="{y:g}" y2="{y:g}"/>' for left, right, y in steps)
    turns = "".join(
        f'<line x1="{later[0]:g}%" x2="{later[0]:g}%" y1="{one[2]:g}" y2="{later[2]:g}"/>'
        for one, later in pairwise(steps)
    )
    return f'<g class="step">{flat}{turns}</g>'


def _below(workload: WorkloadLane, steps: Sequence[_Step], y: Callable[[int], float]) -> str:
    """Shade where the workload was under its PDB minimum, once it had been up to it."""
    boxes = []
    for left, right, ready, since in steps:
        if workload.minimum is not None and since in workload.under:
            size = f'width="{max(right - left, 0.3):g}%" height="{y(ready) - y(workload.minimum):.1f}"'
            boxes.append(f'<rect class="under" fill="url(#below)" x="{left:g}%" y="{y(workload.minimum):g}" {size}/>')
    return "".join(boxes)


def _area(workload: WorkloadLane, step: _Step, y: Callable[[int], float], base: float, times: ReportClock) -> str:
    left, right, ready, since = step
    minimum = "" if workload.minimum is None else f", PDB minimum {workload.minimum}"
    title = f"{workload.name}: {ready} of {workload.desired} ready{minimum}\nsince {times.moment(since)}"
    size = f'width="{max(right - left, 0.1):g}%" height="{max(base - y(ready), 0):g}"'
    return (
        f'<g class="sample"><title>{safe(title)}</title><rect class="area" x="{left:g}%" y="{y(ready):g}" {size}/></g>'
    )
