"""Style sheet of the pages: one column of names beside the tracks on a screen, names above them on a phone."""

from leeward.cli.report.style import VARIABLES

_BASE = """
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1320px; padding: 28px 28px 48px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 25px; line-height: 1.25; font-weight: 650; margin: 0 0 6px; letter-spacing: -.01em; text-wrap: balance;
  overflow-wrap: break-word; }
h2 { font-size: 17px; font-weight: 650; margin: 36px 0 10px; }
p { margin: 4px 0; } .quiet { color: var(--quiet); }
.figures { display: flex; flex-wrap: wrap; gap: 10px; margin: 18px 0 14px; padding: 0; list-style: none; }
.figures li { flex: 1 1 auto; min-width: 104px; padding: 8px 14px; border-radius: 8px; background: var(--panel);
  color: var(--quiet); font-size: 13px; }
.figures b { display: block; font-size: 20px; font-weight: 650; line-height: 1.3; color: var(--ink);
  white-space: nowrap; }
.figures .bad b { color: var(--bad); } .figures .good b { color: var(--good); }
.notes { font-size: 13px; color: var(--quiet); margin: 10px 0; padding: 0 0 0 1.2em; }
.patterns { position: absolute; }
"""
_KEY = """
.key { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 14px; padding: 0; list-style: none;
  font-size: 13px; color: var(--quiet); }
.key li { display: flex; align-items: center; gap: 7px; } .key b { color: var(--ink); font-weight: 600; }
.key svg { flex: none; }
"""
_CHART = """
.chart { position: relative; font-size: 12px; line-height: 1.3; }
.chart svg { display: block; overflow: visible; }
.axis, .lane { display: grid; grid-template-columns: var(--label) minmax(0, 1fr); }
.axis { position: sticky; top: 0; z-index: 2; background: var(--paper); padding: 5px 0 3px; }
.axis.last { position: static; }
.lines { position: absolute; left: var(--label); right: 0; top: 26px; bottom: 24px; }
.lines svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.lane { position: relative; z-index: 1; align-items: end; padding: 4px 0; }
.lane.low { padding: 1px 0; }
.name { padding-right: 14px; min-width: 0; } .name b { font-weight: 500; display: block; }
.name span { color: var(--quiet); font-size: 12px; display: block; }
.chart h3 { position: relative; z-index: 1; margin: 14px 0 4px; padding-bottom: 4px; font-size: 12.5px;
  font-weight: 650;
  border-bottom: 1px solid var(--line); }
.chart text { fill: var(--ink); } .tick text { fill: var(--quiet); font-size: 12px; }
.grid { stroke: var(--line); stroke-width: 1; }
.span rect { stroke: var(--edge); stroke-width: .6; } .span:hover rect { stroke: var(--ink); stroke-width: 1.6; }
.span text, .level { font-size: 12px; paint-order: stroke; stroke: var(--halo); stroke-width: 3.5px;
  stroke-linejoin: round; pointer-events: none; }
.gone line { stroke: var(--gone); stroke-width: 1.5; stroke-dasharray: 1 4; stroke-linecap: round; }
.gone rect { fill: transparent; stroke: none !important; } .gone:hover line { stroke: var(--ink); }
.shape { stroke: var(--paper); } .shape.event { fill: var(--event); } .shape.blocked { fill: var(--blocked); }
.shape.fault { fill: var(--fault); } .shape.decision { fill: var(--decision); }
svg text.number { fill: var(--number); font-size: 12px; font-weight: 700; text-anchor: middle; }
svg text.more { fill: var(--ink); font-size: 12px; font-weight: 600; }
.mark:hover .shape, .mark:focus .shape { stroke: var(--ink); stroke-width: 2; }
.step { stroke: var(--ready); stroke-width: 2; stroke-linecap: square; } .area { fill: var(--area); }
.sample:hover .area { stroke: var(--ready); }
.desired { stroke: var(--desired); stroke-width: 1; }
.minimum { stroke: var(--minimum); stroke-width: 1.4; stroke-dasharray: 6 4; }
text.level { fill: var(--quiet); } text.level.floor { fill: var(--bad); }
.chart .narrow, .chart .large { display: none; }
"""
_TABLES = """
table { border-collapse: collapse; width: 100%; font-size: 13px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--quiet); border-bottom: 1px solid var(--edge);
  padding: 4px 14px 4px 0; vertical-align: bottom; }
td { border-bottom: 1px solid var(--line); padding: 6px 14px 6px 0; vertical-align: top; unicode-bidi: isolate; }
td:last-child, th:last-child { padding-right: 0; }
td.still { white-space: nowrap; } th.right, td.right { text-align: right; white-space: nowrap; }
tr:target td { background: var(--target); } td.name { min-width: 15em; }
td.name span, td.place span { display: block; color: var(--quiet); font-size: 12px; font-weight: 400; }
td.place b { font-weight: 600; } td i { display: none; font-style: normal; color: var(--quiet); }
td.glyph { width: 42px; padding: 3px 10px 3px 0; } .bad { color: var(--bad); }
.inner { margin-top: 14px; font-size: 13px; color: var(--quiet); max-width: none; }
.inner ul { margin: 6px 0; padding-left: 1.4em; }

td .shape { stroke: none; } td svg { display: block; overflow: visible; }
td p { margin: 0; } td p b { font-weight: 600; display: inline-block; min-width: 6.2em; }
details { max-width: 70em; } summary { cursor: pointer; }
details[open] > p { color: var(--quiet); margin-top: 4px; }
summary::marker { color: var(--quiet); }
"""
_PHONE = """
@media (min-width: 1300px) { .chart .large { display: inline; } }
@media (max-width: 999px) {
  .axis, .lane { grid-template-columns: minmax(0, 1fr); } .chart .axis > :first-child { display: none; }
  .lines { left: 0; }
  .lane { row-gap: 2px; padding: 6px 0; } .lane.low { padding: 2px 0; }
  .chart .name { display: flex; flex-wrap: wrap; column-gap: 8px; align-items: baseline; padding: 0;
    background: var(--paper); }
  .chart .narrow { display: inline; } .chart .tick.narrow, .lines .narrow { display: block; }
  .chart .wide { display: none; }
}
@media (max-width: 699px) {
  body { padding: 18px 16px 32px; } h1 { font-size: 21px; }
  .chart { margin: 0 8px; }
  .figures { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .figures li { min-width: 0; padding: 8px 12px; }
  .key span span { display: none; } .key { gap: 4px 14px; }
  table, tbody { display: block; } thead { display: none; }
  tr { display: flex; flex-wrap: wrap; align-items: center; gap: 2px 12px; padding: 10px 12px; margin: 0 0 8px;
    border: 1px solid var(--line); border-radius: 8px; background: var(--panel); }
  tr:target { background: var(--target); }
  td, td.name { display: block; border: 0; padding: 0; min-width: 0; } td.right { text-align: left; }
  td.name, td.long { flex: 1 0 100%; } td.name { font-weight: 600; } td.name span { font-weight: 400; }
  td:empty { display: none; }
  td i { display: inline; } td.place { display: flex; flex-wrap: wrap; gap: 0 8px; align-items: baseline; }
  td .shape { stroke: none; }
}
"""
_PRINT = """
@media print {
  @page { size: A4 landscape; margin: 11mm; }
  body { max-width: none; padding: 0; font-size: 11px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h1 { font-size: 17px; } .figures li { padding: 3px 10px; font-size: 10px; } .figures b { font-size: 13px; }
  .figures { margin: 6px 0; } .lane { padding: 2px 0; } td.glyph svg { height: 22px; }
  td { padding-top: 2px; padding-bottom: 2px; }
  .phase { display: inline; } .phase:not(:last-child)::after { content: "; "; }
  .axis { position: static; } table { font-size: 10px; } h2 { margin-top: 18px; }
  .lane, tr, .figures, .key { break-inside: avoid; } h2, h3 { break-after: avoid; }
  thead { display: table-header-group; }
}
"""
SHEET = VARIABLES + _BASE + _KEY + _CHART + _TABLES + _PHONE + _PRINT
