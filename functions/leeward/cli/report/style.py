"""Style of the page: one style sheet and the patterns of the phases, in the Okabe-Ito colours.

No phase is distinguished by colour alone: each has a pattern and, where it fits, its name; marks have shapes, numbers.
"""

from leeward.cli.report.record import MarkKind, Phase

# Okabe and Ito's palette, which people with all kinds of colour vision can distinguish.
ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"
INK, QUIET, LINE, PAPER = "#1d2733", "#5d6b7a", "#d9dfe6", "#ffffff"

PHASE_WORDS = {
    Phase.LAUNCHING: "asked for, not yet Ready",
    Phase.READY: "in service",
    Phase.CORDONED: "no new pods",
    Phase.DRAINING: "pods are leaving",
    Phase.SETTLING: "empty, load balancers and volumes let go",
    Phase.TERMINATED: "gone",
}
MARK_WORDS = {
    MarkKind.EVENT: "it came from outside",
    MarkKind.BLOCKED: "refused for now",
    MarkKind.FAULT: "something went wrong",
    MarkKind.DECISION: "Leeward decided",
}
MARK_COLOURS = {
    MarkKind.EVENT: BLUE,
    MarkKind.BLOCKED: VERMILION,
    MarkKind.FAULT: "#000000",
    MarkKind.DECISION: "#00735a",
}

PATTERNS = f"""<defs>
<pattern id="launching" width="7" height="7" patternUnits="userSpaceOnUse"><rect width="7" height="7" fill="#eef6fc"/>
<circle cx="2" cy="2" r="1.1" fill="{BLUE}"/><circle cx="5.5" cy="5.5" r="1.1" fill="{BLUE}"/></pattern>
<pattern id="ready" width="8" height="8" patternUnits="userSpaceOnUse">
<rect width="8" height="8" fill="#bfe5d9"/></pattern>
<pattern id="cordoned" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="8" height="8" fill="#fdf0d2"/><rect width="2.4" height="8" fill="{ORANGE}"/></pattern>
<pattern id="draining" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6" fill="#fbe3d3"/>
<path d="M0 0L6 6M6 0L0 6" stroke="{VERMILION}" stroke-width="1.1"/></pattern>
<pattern id="settling" width="6" height="5" patternUnits="userSpaceOnUse"><rect width="6" height="5" fill="#eaf5fc"/>
<rect width="6" height="1.6" fill="{SKY}"/></pattern>
<pattern id="below" width="5" height="5" patternUnits="userSpaceOnUse"><rect width="5" height="5" fill="#fbe3d3"/>
<rect width="1.6" height="5" fill="{VERMILION}"/></pattern>
</defs>"""

SHEET = f"""
:root {{ color-scheme: light; --ink: {INK}; --quiet: {QUIET}; --line: {LINE}; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 1320px; padding: 28px 28px 48px; background: {PAPER}; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }}
h1 {{ font-size: 25px; font-weight: 650; margin: 0; letter-spacing: -.01em; }}
h2 {{ font-size: 17px; font-weight: 650; margin: 34px 0 8px; }}
p {{ margin: 4px 0; }} .quiet {{ color: var(--quiet); }}
.facts {{ display: flex; flex-wrap: wrap; gap: 10px 34px; margin: 16px 0 10px; padding: 0; list-style: none; }}
.facts b {{ display: block; font-size: 20px; font-weight: 650; line-height: 1.25; }}
.facts li {{ color: var(--quiet); }} .facts b {{ color: var(--ink); }} .facts .bad b {{ color: #a34700; }}
.key {{ display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 8px 0 14px; padding: 0; list-style: none;
  font-size: 13px; color: var(--quiet); }}
.key li {{ display: flex; align-items: center; gap: 7px; }} .key b {{ color: var(--ink); font-weight: 600; }}
.key svg {{ flex: none; }}
.notes {{ font-size: 13px; color: var(--quiet); margin: 8px 0; padding: 0 0 0 1.2em; }}
.wide {{ overflow-x: auto; }}
.chart {{ display: block; width: 100%; min-width: 780px; height: auto; font-size: 12px; }}
.chart text {{ fill: var(--ink); }} .chart .quiet {{ fill: var(--quiet); }} .chart .small {{ font-size: 10.5px; }}
.chart .head {{ font-weight: 650; font-size: 12.5px; }} .chart .tick {{ fill: var(--quiet); font-size: 11px; }}
.chart .grid {{ stroke: var(--line); stroke-width: 1; }} .chart .rule {{ stroke: #eef1f4; stroke-width: 1; }}
.span rect {{ stroke: #00000030; stroke-width: .6; }} .span:hover rect {{ stroke: var(--ink); stroke-width: 1.6; }}
.span text {{ font-size: 10.5px; paint-order: stroke; stroke: #ffffffd9; stroke-width: 3.5px; stroke-linejoin: round;
  pointer-events: none; }}
.gone line {{ stroke: #8b97a5; stroke-width: 1.5; stroke-dasharray: 1 4; stroke-linecap: round; }}
.gone rect {{ fill: transparent; stroke: none !important; }} .gone:hover line {{ stroke: var(--ink); }}
.mark text {{ fill: #fff; font-size: 9.5px; font-weight: 700; text-anchor: middle; }}
.mark .more {{ fill: var(--ink); font-weight: 600; text-anchor: start; }}
.mark:hover .shape, .mark:focus .shape {{ stroke: var(--ink); stroke-width: 2; }} .mark .shape {{ stroke: #fff; }}
.step {{ fill: none; stroke: {GREEN}; stroke-width: 2; stroke-linejoin: round; }} .area {{ fill: #009e731c; }}
.desired {{ stroke: #7d8997; stroke-width: 1; }}
.minimum {{ stroke: {VERMILION}; stroke-width: 1.4; stroke-dasharray: 6 4; }}
.sample {{ fill: transparent; }} .sample:hover {{ fill: #0072b214; }}
table {{ border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }}
th {{ text-align: left; font-weight: 600; color: var(--quiet); border-bottom: 1px solid #aeb8c2;
  padding: 4px 12px 4px 0; vertical-align: bottom; }}
td {{ border-bottom: 1px solid var(--line); padding: 4px 12px 4px 0; vertical-align: top; overflow-wrap: anywhere;
  unicode-bidi: isolate; }}
td.still {{ white-space: nowrap; }} th.right, td.right {{ text-align: right; white-space: nowrap; }}
tr:target td {{ background: #fff3c9; }} td.name {{ min-width: 13.5em; }}
@media print {{
  @page {{ size: A4 landscape; margin: 11mm; }}
  body {{ max-width: none; padding: 0; font-size: 11px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  .wide {{ overflow: visible; }} .chart {{ min-width: 0; }}
  .chart:not(.tall) {{ max-height: 185mm; }} table {{ font-size: 10px; }}
  tr, .facts, .key, .chart {{ break-inside: avoid; }} h2 {{ break-after: avoid; }}
  thead {{ display: table-header-group; }}
}}
"""
