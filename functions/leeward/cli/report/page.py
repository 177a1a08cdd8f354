"""Page of a run: a few figures, the chart, and a table of every mark, span and workload beneath.

One file that loads nothing: style and chart are in it, and there is no script."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from leeward.cli.report.chart import chart, shape
from leeward.cli.report.layout import clock, count, day, length, moment, numbered_marks, safe
from leeward.cli.report.record import MarkKind, Phase, RunRecord, Source, WorkloadLane
from leeward.cli.report.style import MARK_WORDS, PHASE_WORDS, SHEET

_SOURCES = {
    Source.SIMULATION: "a simulated run, in virtual time",
    Source.LOCAL: "a run on the local stack",
    Source.EXECUTION: "an execution's history",
}
# The page loads nothing and runs nothing, whatever a record's texts hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
Row = tuple[str, ...]
RIGHT, STILL, NAME = "right", "still", "name"  # figures, times that do not wrap, names that seldom do


def page(record: RunRecord) -> str:
    """Return the whole HTML document."""
    same_day = day(record.start) == day(record.end)
    end = clock(record.end) if same_day else moment(record.end)
    when = f"{moment(record.start)} to {end} UTC, {length(record.end - record.start)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Leeward: {safe(when)}</title>
<style>{SHEET}</style>
</head>
<body>
<header>
<h1>{safe(_verdict(record))}</h1>
{f"<p>{safe(record.about)}</p>" if record.about else ""}
<p class="quiet">{safe(_SOURCES[record.source])} · {safe(when)}</p>
</header>
{_facts(record)}
<main>
{_key(record)}
<div class="wide">{chart(record)}</div>
{_notes(record)}
<h2 id="marks">Marks</h2>
{_marks(record)}
<h2 id="spans">Nodes</h2>
{_spans(record)}
<h2 id="workloads">Workloads</h2>
{_workloads(record)}
</main>
</body>
</html>
"""


def _verdict(record: RunRecord) -> str:
    """Return the answer to the first question of a reader: did workloads suffer?"""
    broken = [workload.name for workload in record.workloads if workload.under]
    went = count(_reached(record, Phase.TERMINATED), "node") + " went"
    if broken:
        return f"{went}, {count(len(broken), 'workload')} fell below the PDB minimum"
    if any(workload.minimum is not None for workload in record.workloads):
        return f"{went}, no workload fell below its PDB minimum"
    return went


def _watched(record: RunRecord) -> bool:
    """Return whether replicas were counted: they are not while an execution runs, which differs from no workloads."""
    return bool(record.workloads) or record.source is not Source.EXECUTION


def _reached(record: RunRecord, phase: Phase) -> int:
    return sum(any(span.phase is phase and span.end > record.start for span in node.spans) for node in record.nodes)


def _facts(record: RunRecord) -> str:
    broken = sum(bool(workload.under) for workload in record.workloads)
    kinds = [mark.kind for mark in record.marks]
    workloads = ((len(record.workloads), "workloads", False), (broken, "fell below the PDB minimum", broken > 0))
    facts = (
        (len(record.nodes), "nodes seen", False),
        (_reached(record, Phase.TERMINATED), "terminated", False),
        (_reached(record, Phase.LAUNCHING), "launched", False),
        *(workloads if _watched(record) else ()),
        (kinds.count(MarkKind.EVENT), "events", False),
        (kinds.count(MarkKind.BLOCKED), "blocks", False),
        (kinds.count(MarkKind.FAULT), "faults", False),
        (kinds.count(MarkKind.DECISION), "decisions", False),
    )
    items = (f"<li{' class=bad' if bad else ''}><b>{number}</b>{word}</li>" for number, word, bad in facts)
    return f'<ul class="facts">{"".join(items)}</ul>'


def _notes(record: RunRecord) -> str:
    """List what the chart cannot show, and why."""
    items = "".join(f"<li>{safe(note)}</li>" for note in record.notes)
    return f'<ul class="notes">{items}</ul>' if items else ""


def _key(record: RunRecord) -> str:
    """Explain patterns and shapes; only those that the chart has."""
    phases = {span.phase for node in record.nodes for span in node.spans}
    kinds = {mark.kind for mark in record.marks}
    items = [_key_item(_swatch(phase), phase.value, PHASE_WORDS[phase]) for phase in Phase if phase in phases]
    items += [_key_item(_glyph(kind), kind.value, MARK_WORDS[kind]) for kind in MarkKind if kind in kinds]
    if record.workloads:
        items.append(_key_item(_line("step"), "ready", "replicas of a workload"))
        items.append(_key_item(_line("desired"), "desired", "replicas that it should have"))
        items.append(_key_item(_line("minimum"), "PDB minimum", "the least that its PodDisruptionBudget allows"))
    return f'<ul class="key">{"".join(items)}</ul>' if items else ""


def _key_item(picture: str, word: str, meaning: str) -> str:
    return f"<li>{picture}<span><b>{word}</b> {meaning}</span></li>"


def _swatch(phase: Phase) -> str:
    inner = f'<rect x=".5" y=".5" width="29" height="13" rx="2" fill="url(#{phase.value})" stroke="#00000030"/>'
    if phase is Phase.TERMINATED:
        inner = '<g class="gone"><line x1="2" x2="29" y1="7" y2="7"/></g>'
    return f'<svg width="30" height="14" aria-hidden="true">{inner}</svg>'


def _glyph(kind: MarkKind) -> str:
    return f'<svg width="22" height="22" aria-hidden="true">{shape(kind, 11, 12)}</svg>'


def _line(name: str) -> str:
    return f'<svg width="30" height="14" aria-hidden="true"><line class="{name}" x1="0" x2="30" y1="7" y2="7"/></svg>'


def _marks(record: RunRecord) -> str:
    rows = []
    for numbered in numbered_marks(record):
        mark = numbered.mark
        subject = mark.node or mark.workload or "the run"
        cells = (str(numbered.number), moment(mark.at), _since(record, mark.at), mark.kind.value, subject, mark.text)
        rows.append((f"mark-{numbered.number}", cells))
    return _table(
        ("#", "when (UTC)", "after", "kind", "where", "what"),
        rows,
        {0: RIGHT, 1: STILL, 2: RIGHT, 3: STILL, 4: NAME},
        none="No marks.",
    )


def _spans(record: RunRecord) -> str:
    rows: list[Row] = []
    for node in sorted(record.nodes, key=lambda one: (one.zone, one.group, one.name)):
        facts = (node.name, node.instance, node.group, node.zone, node.capacity_type)
        for span in node.spans:
            times = (moment(span.begin), moment(span.end), length(span.end - span.begin))
            rows.append((*facts, span.phase.value, *times))
        if not node.spans:
            rows.append((*facts, "nothing recorded", "", "", ""))
    heads = ("node", "instance", "group", "zone", "capacity", "phase", "from (UTC)", "to", "length")
    named = ((f"span-{number}", cells) for number, cells in enumerate(rows, start=1))
    return _table(heads, named, {0: NAME, 6: STILL, 7: STILL, 8: RIGHT}, none="No nodes.")


def _workloads(record: RunRecord) -> str:
    rows = [
        (
            f"workload-{number}",
            (w.name, str(w.desired), _or_dash(w.minimum), _or_dash(w.lowest), _below(w), _history(w)),
        )
        for number, w in enumerate(record.workloads, start=1)
    ]
    heads = (
        "workload",
        "desired",
        "PDB minimum",
        "lowest after it was up",
        "below it",
        "ready replicas over time",
    )
    none = (
        "No workloads." if _watched(record) else "Not recorded: ready replicas are not counted while an execution runs."
    )
    return _table(heads, rows, {0: NAME, 1: RIGHT, 2: RIGHT, 3: RIGHT}, none=none)


def _below(workload: WorkloadLane) -> str:
    if workload.minimum is None:
        return "no budget"
    return "yes" if workload.under else "never"


def _history(workload: WorkloadLane) -> str:
    return ", ".join(f"{clock(sample.at)} {sample.ready}" for sample in workload.samples)


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


def _since(record: RunRecord, at: datetime) -> str:
    return f"-{length(record.start - at)}" if at < record.start else length(at - record.start)


def _table(heads: Sequence[str], rows: Iterable[tuple[str, Row]], columns: Mapping[int, str], *, none: str) -> str:
    """Build a table. Each row is (its id, its cells); `columns` gives the alignment class of some columns."""
    lines = [f'<tr id="{name}">{_cells("td", cells, columns)}</tr>' for name, cells in rows]
    if not lines:
        return f'<p class="quiet">{none}</p>'
    head = f"<thead><tr>{_cells('th', heads, columns)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{"".join(lines)}</tbody></table></div>'


def _cells(tag: str, cells: Sequence[str], columns: Mapping[int, str]) -> str:
    classed = (f' class="{columns[index]}"' if index in columns else "" for index in range(len(cells)))
    return "".join(f"<{tag}{kind}>{safe(cell)}</{tag}>" for kind, cell in zip(classed, cells, strict=True))
