"""Glyphs of marks: a shape for each kind, the number that the table explains, all facts on hover."""

from leeward.cli.report.labels import clock, safe
from leeward.cli.report.layout import Cluster, Numbered
from leeward.cli.report.record import MarkKind
from leeward.cli.report.style import MARK_COLOURS

# The most important kind gives a shared glyph its shape.
_WEIGHT = (MarkKind.FAULT, MarkKind.BLOCKED, MarkKind.EVENT, MarkKind.DECISION)


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
