"""Colours of reports against WCAG 2.2: 4.5 for text (1.4.3), 3 for lines and shapes that carry meaning (1.4.11)."""

import re

import pytest

from leeward.cli.report.record import MarkKind, Phase
from leeward.cli.report.sheet import SHEET
from leeward.cli.report.style import DARK, LIGHT

SCHEMES = {"light": LIGHT, "dark": DARK}
# (foreground, background) of texts; labels on bars and curves are drawn with a halo
TEXTS = [
    ("ink", "paper"),
    ("ink", "panel"),
    ("ink", "target"),
    ("quiet", "target"),
    ("ink", "halo"),
    ("quiet", "paper"),
    ("quiet", "panel"),
    ("quiet", "halo"),
    ("bad", "paper"),
    ("bad", "panel"),
    ("bad", "halo"),
    ("good", "paper"),
    ("good", "panel"),
    *(("number", kind.value) for kind in MarkKind),
]
SHAPES = [
    *((kind.value, "paper") for kind in MarkKind),
    ("ready", "paper"),
    ("ready", "area"),
    ("desired", "paper"),
    ("minimum", "paper"),
    ("minimum", "area"),
    ("gone", "paper"),
    ("launching-ink", "launching-back"),
    ("draining-ink", "draining-back"),
]


def luminance(colour):
    """Relative luminance of `#rrggbb` (WCAG 2.2, definition)."""
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_the_formula_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == 21
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48
    assert contrast("#123456", "#123456") == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_can_be_read(scheme):
    colours = SCHEMES[scheme]
    ratios = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in TEXTS}
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_line_and_shape_that_means_something_can_be_seen(scheme):
    colours = SCHEMES[scheme]
    ratios = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in SHAPES}
    assert {pair: round(ratio, 2) for pair, ratio in ratios.items() if ratio < 3} == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_neighbouring_phases_differ_in_their_pattern_or_ground(scheme):
    colours = SCHEMES[scheme]
    shown = {phase: (colours.get(f"{phase}-back"), colours.get(f"{phase}-ink")) for phase in Phase}
    assert len(set(shown.values())) == len(Phase)


def test_both_schemes_define_the_same_colours_and_the_sheet_uses_no_other():
    assert set(LIGHT) == set(DARK)
    rules = SHEET.partition("* { box-sizing")[2]
    assert set(re.findall(r"var\(--([a-z-]+)\)", rules)) - {"label"} <= set(LIGHT)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", rules)
