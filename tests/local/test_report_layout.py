"""Layout of reports as Chromium computes it, on a phone and on a large screen, light and dark."""

from itertools import combinations

import pytest

from leeward.cli.report.page import page
from leeward.cli.report.style import DARK, LIGHT
from tests.local.browser import chromium, measured
from tests.unit.cli.report.run import a_full_record, a_mark, a_node, a_record, a_span, a_workload

__all__ = ["chromium"]  # a fixture

PHONE, SCREEN = 390, 1440
LEAST_SIZE = 12  # pixels of the smallest text
SCHEMES = {"light": LIGHT, "dark": DARK}
PHASES = ("launching", "ready", "cordoned", "draining", "settling", "terminated")


def a_crowded_record():
    """Long names, a mark every second, short phases, many workloads with samples."""
    long = "ip-10-40-0-4.a-very-long-private-domain-of-a-team.eu-central-1.compute.internal"
    spans = [a_span(phase, begin=4 * index, end=4 * index + 4) for index, phase in enumerate(PHASES)]
    return a_record(
        nodes=[a_node(long, spans=spans, group="a-group-with-a-name-of-more-than-forty-characters"), a_node("node-b")],
        workloads=[
            a_workload("shop/a-workload-with-a-long-name-in-a-namespace", ready=[(n, 3 - n % 2) for n in range(60)]),
            a_workload("batch", desired=120, minimum=120, ready=((0, 120), (30, 119))),
        ],
        marks=[
            a_mark(second, kind, f"{kind} {second} " + "i-0123456789abcdef0, " * 20, node=long)
            for second, kind in zip(range(0, 60), ("event", "blocked", "fault", "decision") * 15, strict=True)
        ]
        + [a_mark(second, workload="batch") for second in (0, 20, 59.9)]
        + [a_mark(second, "fault", node="node-b") for second in (0, 60)],
        headline="i-0123456789abcdef0 was reclaimed by EC2 (spot). 12 pods moved in 74 s of 120 s; none was killed.",
    )


RECORDS = {
    "every phase": a_full_record(),
    "crowded": a_crowded_record(),
    "a hundred nodes": a_record(
        nodes=[a_node(f"node-{n}", zone=f"us-east-1{'abc'[n % 3]}") for n in range(100)],
        marks=[a_mark(n % 60, node="node-7") for n in range(120)],
    ),
    "empty": a_record(),
}
PAGES = {name: page(record) for name, record in RECORDS.items()}


def overlapping(boxes, tolerance=1.0):
    """Return the pairs that share more than a line of pixels."""
    boxes = sorted(boxes, key=lambda box: box["top"])
    return [
        (one["text"], other["text"])
        for one, other in combinations(boxes, 2)
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > tolerance
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > tolerance
    ]


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("html", PAGES.values(), ids=PAGES)
def test_the_page_fits_its_texts_are_large_enough_and_no_label_covers_another(chromium, html, width):
    found = measured(chromium, html, width)
    assert found["width"] >= width - 15  # a frame that was not laid out would fit everything
    assert found["scrollWidth"] <= width
    assert len(found["texts"]) > 5
    assert {text["text"] for text in found["texts"] if text["size"] < LEAST_SIZE} == set()
    assert [text["text"] for text in found["texts"] if text["left"] < 0 or text["right"] > width] == []
    assert [glyph["text"] for glyph in found["glyphs"] if glyph["left"] < 0 or glyph["right"] > found["width"]] == []
    labels = [text for text in found["texts"] if text["chart"]]
    assert overlapping(labels, tolerance=2.5) == []
    assert overlapping(found["glyphs"]) == []
    outside = [text for text in labels if text["kind"] != "number"]
    assert overlapping([*outside, *found["glyphs"]], tolerance=2.5) == []


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_has_the_colours_that_the_reader_prefers(chromium, scheme, width):
    found = measured(chromium, page(a_full_record()), width, scheme)
    assert (found["background"], found["colour"]) == tuple(map(rgb, (SCHEMES[scheme]["paper"], SCHEMES[scheme]["ink"])))


def rgb(colour):
    return f"rgb({', '.join(str(int(colour[index : index + 2], 16)) for index in (1, 3, 5))})"


def test_a_page_that_is_too_wide_or_small_or_crowded_would_be_noticed(chromium):
    texts = '<svg class="chart" width="90" height="20"><text y="9" font-size="9">one</text><text y="9">two</text></svg>'
    found = measured(chromium, f'<body style="margin:0"><p style="width:500px">wide</p>{texts}', PHONE)
    assert found["scrollWidth"] == 500
    assert min(text["size"] for text in found["texts"]) == 9
    assert overlapping([text for text in found["texts"] if text["chart"]]) == [("two", "one")]
