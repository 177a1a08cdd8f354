"""Tables under the chart: every mark, node and workload with its exact times. On a phone a row becomes a card.

Entries about Leeward's own steps stand in a list of their own, which is closed."""

from collections.abc import Iterable, Iterator, Sequence

from leeward.cli.report.glyphs import numbered_shape
from leeward.cli.report.layout import Numbered, numbered_marks
from leeward.cli.report.record import Mark, NodeLane, RunRecord, Source, Span, WorkloadLane
from leeward.cli.report.texts import SHORT, ReportClock, clock, count, length, safe, shortened, without_announcement

MOST_SAMPLES = 12  # of a workload in its row; the others open below them
Cell = tuple[str, str]  # class, HTML


def marks_section(record: RunRecord) -> str:
    """Return the table of the marks, then the closed list of Leeward's own steps."""
    times = ReportClock.of(record)
    rows = [(f"mark-{one.number}", tuple(_mark(one, record, times))) for one in numbered_marks(record)]
    found = table(("", "when", "after", "where", "what"), rows, none="No marks.")
    inner = [mark for mark in record.marks if mark.internal]
    if not inner:
        return found
    lines = "".join(f"<li>{times.moment(mark.at)} {safe(_place(mark))}: {safe(mark.text)}</li>" for mark in inner)
    return (
        f'{found}<details class="inner"><summary>{count(len(inner), "step")} of Leeward itself</summary>'
        f"<ul>{lines}</ul></details>"
    )


def _mark(numbered: Numbered, record: RunRecord, times: ReportClock) -> Iterator[Cell]:
    mark = numbered.mark
    after = mark.at - record.start
    since = f"-{length(-after)}" if mark.at < record.start else length(after)
    picture = numbered_shape(mark.kind, numbered.number)
    yield (
        "glyph",
        f'<svg width="32" height="28" role="img" aria-label="{numbered.number}, {mark.kind.value}">'
        f'<svg x="50%" y="15">{picture}</svg></svg>',
    )
    yield "still", safe(times.moment(mark.at))
    yield "still quiet", safe(f"+{since}" if not since.startswith("-") else since)
    yield "place", f"<b>{mark.kind.value}</b><span>{safe(_place(mark))}</span>"
    yield "long", _text(times.sentence(mark.text))


def _place(mark: Mark) -> str:
    return mark.node or mark.workload or "the run"


def _text(text: str) -> str:
    """Return a sentence; a long one is cut and opens."""
    whole = without_announcement(text)
    short = shortened(whole)
    if len(whole) <= SHORT or short == whole:
        return safe(whole)
    return f"<details><summary>{safe(short)}</summary><p>{safe(whole)}</p></details>"


def nodes_section(record: RunRecord) -> str:
    """Return the table of the nodes, a row for each with all its phases."""
    times = ReportClock.of(record)
    nodes = sorted(record.nodes, key=lambda one: (one.zone, one.group, one.name))
    rows = [(f"node-{number}", tuple(_node(node, times))) for number, node in enumerate(nodes, start=1)]
    return table(("node", "group", "phases"), rows, none="No nodes.")


def _node(node: NodeLane, times: ReportClock) -> Iterator[Cell]:
    yield "name", f"{safe(node.name)}<span>{safe(node.instance)}</span>"
    yield "", safe(" · ".join(word for word in (node.group, node.zone, node.capacity_type) if word))
    phases = "".join(_phase(span, times) for span in node.spans)
    yield "long", phases or "nothing recorded"


def _phase(span: Span, times: ReportClock) -> str:
    moments = f"{times.moment(span.begin)} to {times.moment(span.end)}, {length(span.end - span.begin)}"
    return f'<p class="phase"><b>{span.phase.value}</b> {moments}</p>'


def workloads_section(record: RunRecord) -> str:
    """Return the table of the workloads, with the number of ready replicas at each change."""
    rows = [
        (f"workload-{number}", tuple(_workload(workload))) for number, workload in enumerate(record.workloads, start=1)
    ]
    observed = record.workloads or record.source is not Source.EXECUTION
    none = "No workloads." if observed else "Not observed: no step read a PodDisruptionBudget."
    return table(("workload", "desired", "PDB minimum", "lowest", "ready replicas over time"), rows, none=none)


def _workload(workload: WorkloadLane) -> Iterator[Cell]:
    minimum = "none" if workload.minimum is None else str(workload.minimum)
    lowest = "-" if workload.lowest is None else str(workload.lowest)
    below = '<b class="bad">, below it</b>' if workload.under else ""
    yield "name", safe(workload.name)
    yield "right labelled", f"<i>desired </i>{workload.desired}"
    yield "right labelled", f"<i>PDB minimum </i>{minimum}"
    yield "right labelled", f"<i>lowest </i>{lowest}{below}"
    changes = [f"{clock(sample.at)} {sample.ready}" for sample in workload.held]
    shown, rest = changes[:MOST_SAMPLES], changes[MOST_SAMPLES:]
    text = safe(", ".join(shown))
    more = f"<details><summary>{len(rest)} more</summary><p>{safe(', '.join(rest))}</p></details>" if rest else ""
    yield "long", text + more


def table(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[Cell]]], *, none: str) -> str:
    """Build a table. Each row is (its id, its cells); a head stands as the cells of the first row."""
    rows = list(rows)
    lines = [f'<tr id="{name}">{"".join(map(_cell, cells))}</tr>' for name, cells in rows]
    if not lines:
        return f'<p class="quiet">{none}</p>'
    kinds = (' class="right"' if "right" in kind.split() else "" for kind, _ in rows[0][1])
    head = "".join(f"<th{kind}>{safe(text)}</th>" for kind, text in zip(kinds, heads, strict=True))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(cell: Cell) -> str:
    kind, inner = cell
    return f'<td class="{kind}">{inner}</td>' if kind else f"<td>{inner}</td>"
