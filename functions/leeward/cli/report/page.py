"""Page of a run: its headline, a few figures, the chart, and a table of every mark, node and workload beneath.

One file that loads nothing: style and chart are in it, and there is no script."""

from collections.abc import Iterable

from leeward.cli.report.chart import chart
from leeward.cli.report.glyphs import numbered_shape
from leeward.cli.report.headline import Figure, figures, headline
from leeward.cli.report.record import MarkKind, Phase, RunRecord, Source
from leeward.cli.report.sheet import SHEET
from leeward.cli.report.style import MARK_WORDS, PHASE_WORDS
from leeward.cli.report.tables import marks_section, nodes_section, workloads_section
from leeward.cli.report.texts import clock, day, length, safe

_SOURCES = {
    Source.SIMULATION: "a simulated run, in virtual time",
    Source.LOCAL: "a run on the local stack",
    Source.EXECUTION: "from an execution's history",
}
# The page loads nothing and runs nothing, whatever a record's texts hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(record: RunRecord) -> str:
    """Return the whole HTML document."""
    end = clock(record.end) if day(record.start) == day(record.end) else f"{day(record.end)} {clock(record.end)}"
    when = f"{day(record.start)} {clock(record.start)} to {end} UTC, {length(record.end - record.start)}"
    about = f'<p class="quiet">{safe(record.about)}</p>' if record.about else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{safe(f"Leeward: {when}")}</title>
<style>{SHEET}</style>
</head>
<body>
<header>
<h1>{safe(headline(record))}</h1>
{about}<p class="quiet">{safe(when)} · {safe(_SOURCES[record.source])}</p>
</header>
{_figure_list(figures(record))}
<main>
{_key(record)}
{chart(record)}
{_notes(record.notes)}
<h2 id="marks">What happened</h2>
{marks_section(record)}
<h2 id="nodes">Nodes</h2>
{nodes_section(record)}
<h2 id="workloads">Workloads</h2>
{workloads_section(record)}
</main>
</body>
</html>
"""


def _figure_list(found: Iterable[Figure]) -> str:
    """Return the figures as a list of tiles."""
    kinds = {True: ' class="good"', False: ' class="bad"', None: ""}
    items = (f"<li{kinds[one.good]}><b>{safe(one.value)}</b>{safe(one.label)}</li>" for one in found)
    joined = "".join(items)
    return f'<ul class="figures">{joined}</ul>' if joined else ""


def _notes(sentences: Iterable[str]) -> str:
    """List what the page cannot show, and why."""
    items = "".join(f"<li>{safe(note)}</li>" for note in sentences)
    return f'<ul class="notes">{items}</ul>' if items else ""


def _key(record: RunRecord) -> str:
    """Explain patterns and shapes; only those that the chart has."""
    phases = {span.phase for node in record.nodes for span in node.spans}
    kinds = {mark.kind for mark in record.marks if not mark.internal}
    items = [_key_item(_swatch(phase), phase.value, PHASE_WORDS[phase]) for phase in Phase if phase in phases]
    items += [_key_item(_glyph(kind), kind.value, MARK_WORDS[kind]) for kind in MarkKind if kind in kinds]
    if record.workloads:
        items.append(_key_item(_line("step"), "ready", "replicas of a workload"))
        items.append(_key_item(_line("desired"), "desired", "replicas that it should have"))
        items.append(_key_item(_line("minimum"), "PDB minimum", "the least that its PodDisruptionBudget allows"))
    return f'<ul class="key">{"".join(items)}</ul>' if items else ""


def _key_item(picture: str, word: str, meaning: str) -> str:
    return f"<li>{picture}<span><b>{word}</b> <span>{meaning}</span></span></li>"


def _swatch(phase: Phase) -> str:
    inner = f'<g class="span"><rect x=".5" y=".5" width="29" height="13" rx="2" fill="url(#{phase.value})"/></g>'
    if phase is Phase.TERMINATED:
        inner = '<g class="gone"><line x1="2" x2="29" y1="7" y2="7"/></g>'
    return f'<svg width="30" height="14" aria-hidden="true">{inner}</svg>'


def _glyph(kind: MarkKind) -> str:
    return f'<svg width="22" height="22" viewBox="-15 -15 30 30" aria-hidden="true">{numbered_shape(kind)}</svg>'


def _line(name: str) -> str:
    return f'<svg width="30" height="14" aria-hidden="true"><line class="{name}" x1="0" x2="30" y1="7" y2="7"/></svg>'
