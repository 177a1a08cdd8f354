"""Glyphs of marks: a shape for each kind, which can be distinguished without colour, and the number of the mark."""

from leeward.cli.report.layout import Cluster
from leeward.cli.report.record import MarkKind
from leeward.cli.report.texts import ReportClock, safe

# The most important mark gives a shared glyph its shape and number.
_WEIGHT = (MarkKind.FAULT, MarkKind.BLOCKED, MarkKind.EVENT, MarkKind.DECISION)


def glyph(cluster: Cluster, y: float, times: ReportClock) -> str:
    """Draw the glyph of a cluster, centred at `y` of its track: shape, number and link are those of its most important
    mark, so that the glyph and its row in the table agree.
    """
    shown = min(cluster.marks, key=lambda numbered: _WEIGHT.index(numbered.mark.kind))
    more = ""
    if len(cluster.marks) > 1:
        place = 'x="-14" text-anchor="end"' if cluster.flipped else 'x="14"'
        more = f'<text class="more" {place} y="4">+{len(cluster.marks) - 1}</text>'
    lines = [f"{n.number}. {times.moment(n.mark.at)} {n.mark.kind.value}: {n.mark.text}" for n in cluster.marks]
    return (
        f'<svg x="{cluster.x:g}%" y="{y:g}"><a class="mark" href="#mark-{shown.number}">'
        f"<title>{safe(chr(10).join(lines))}</title>{numbered_shape(shown.mark.kind, shown.number)}{more}</a></svg>"
    )


def numbered_shape(kind: MarkKind, number: int | None = None) -> str:
    """Draw a circle, square, triangle or diamond around the origin, with the number in it; three digits need more
    space.
    """
    shape = _shape(kind)
    if number is None:
        return shape
    wide = f'<g transform="scale(1.35)">{shape}</g>' if number > 99 else shape
    y = 8.5 if kind is MarkKind.FAULT else 4.2
    return f'{wide}<text class="number" y="{y:g}">{number}</text>'


def _shape(kind: MarkKind) -> str:
    fill = f'class="shape {kind.value}"'
    match kind:
        case MarkKind.EVENT:
            return f'<circle {fill} r="10.5"/>'
        case MarkKind.BLOCKED:
            return f'<rect {fill} x="-10" y="-10" width="20" height="20" rx="2"/>'
        case MarkKind.FAULT:
            return f'<path {fill} d="M0 -14L16.5 11H-16.5Z"/>'
        case MarkKind.DECISION:
            return f'<path {fill} d="M0 -13.5L14.5 0L0 13.5L-14.5 0Z"/>'
