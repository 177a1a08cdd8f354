"""Colours of the page, light and dark, and the patterns of the phases, in Okabe and Ito's hues.

No phase is distinguished by colour alone: each has a pattern and, where it fits, its name; marks have shapes, numbers.
Contrasts are those of WCAG 2.2 AA: 4.5 for text, 3 for lines and shapes that carry meaning, in both schemes."""

from collections.abc import Mapping
from types import MappingProxyType

from leeward.cli.report.record import MarkKind, Phase

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

LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "paper": "#ffffff",
        "panel": "#f4f6f8",
        "ink": "#1b2530",
        "quiet": "#55626f",
        "line": "#d9dfe6",
        "halo": "#ffffff",
        "bad": "#a34700",
        "good": "#00664f",
        "number": "#ffffff",
        "target": "#fff3c9",
        "event": "#005f96",
        "blocked": "#b04a00",
        "fault": "#000000",
        "decision": "#00664f",
        "ready": "#00795a",
        "desired": "#6b7785",
        "minimum": "#b84e00",
        "area": "#d9efe8",
        "gone": "#7d8997",
        "edge": "#8f9ba8",
        "launching-back": "#eef6fc",
        "launching-ink": "#0072b2",
        "ready-back": "#bfe5d9",
        "cordoned-back": "#fdf0d2",
        "cordoned-ink": "#e69f00",
        "draining-back": "#fbe3d3",
        "draining-ink": "#d55e00",
        "settling-back": "#eaf5fc",
        "settling-ink": "#56b4e9",
    }
)
DARK: Mapping[str, str] = MappingProxyType(
    {
        "paper": "#10151b",
        "panel": "#1a222b",
        "ink": "#e8edf2",
        "quiet": "#a6b2be",
        "line": "#2d3742",
        "halo": "#10151b",
        "bad": "#ffa366",
        "good": "#5fd9ae",
        "number": "#0b0f14",
        "target": "#4a3c00",
        "event": "#6cc0f5",
        "blocked": "#ffa366",
        "fault": "#ffffff",
        "decision": "#5fd9ae",
        "ready": "#3ccf9f",
        "desired": "#8d9aa8",
        "minimum": "#ff9a55",
        "area": "#173a30",
        "gone": "#7f8c9a",
        "edge": "#5d6a78",
        "launching-back": "#15303f",
        "launching-ink": "#7cc4ee",
        "ready-back": "#1d5445",
        "cordoned-back": "#3b2f14",
        "cordoned-ink": "#d99500",
        "draining-back": "#46260f",
        "draining-ink": "#ff8c42",
        "settling-back": "#143041",
        "settling-ink": "#56b4e9",
    }
)


def _ground(phase: str, width: float, height: float) -> str:
    return f'<rect width="{width:g}" height="{height:g}" fill="var(--{phase}-back)"/>'


def _pattern(name: str, width: float, height: float, inner: str, more: str = "") -> str:
    size = f'width="{width:g}" height="{height:g}" patternUnits="userSpaceOnUse"'
    return f'<pattern id="{name}" {size}{more}>{inner}</pattern>'


PATTERNS = "".join(
    (
        '<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>',
        _pattern(
            "launching",
            7,
            7,
            f'{_ground("launching", 7, 7)}<g fill="var(--launching-ink)"><circle cx="2" cy="2" r="1.1"/>'
            '<circle cx="5.5" cy="5.5" r="1.1"/></g>',
        ),
        _pattern("ready", 8, 8, _ground("ready", 8, 8)),
        _pattern(
            "cordoned",
            8,
            8,
            f'{_ground("cordoned", 8, 8)}<rect width="2.4" height="8" fill="var(--cordoned-ink)"/>',
            ' patternTransform="rotate(45)"',
        ),
        _pattern(
            "draining",
            6,
            6,
            f'{_ground("draining", 6, 6)}<path d="M0 0L6 6M6 0L0 6" stroke="var(--draining-ink)" stroke-width="1.1"/>',
        ),
        _pattern(
            "settling",
            6,
            5,
            f'{_ground("settling", 6, 5)}<rect width="6" height="1.6" fill="var(--settling-ink)"/>',
        ),
        _pattern(
            "below",
            5,
            5,
            f'{_ground("draining", 5, 5)}<rect width="1.6" height="5" fill="var(--draining-ink)"/>',
        ),
        "</defs></svg>",
    )
)


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


VARIABLES = f"""
:root {{ color-scheme: light dark; --label: 274px; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""
