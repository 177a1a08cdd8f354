"""The page as a browser has it: headless Chromium lays it out, and what it made of it is checked."""

import re
from pathlib import Path

import pytest

from leeward.cli.report.page import page
from leeward.cli.report.record import Phase
from tests.local.browser import Dom, chromium
from tests.unit.cli.report.run import a_full_record, a_mark, a_node, a_record, a_span, a_workload

__all__ = ["chromium"]  # a fixture


def dom_of(chromium, record):
    return Dom(chromium(page(record), "--dump-dom").stdout)


def test_the_browser_has_every_lane_span_mark_and_row(chromium):
    record = a_full_record()
    dom = dom_of(chromium, record)
    assert len(dom.tags("div", "node")) == 2
    assert len(dom.tags("div", "workload")) == 2
    assert len([span for span in dom.tags("g", "span") if "ul" not in span["under"]]) == 7
    assert len(dom.tags("a", "mark")) == 2 * 4  # for a screen and for a phone
    ids = {element["id"] for element in dom.tags("tr") if "id" in element}
    assert {f"mark-{n}" for n in range(1, 5)} | {"node-1", "node-2", "workload-1", "workload-2"} <= ids
    labels = {element["text"] for element in dom.tags("text")}
    assert {phase.value for phase in Phase} <= labels


def test_hovering_shows_the_facts(chromium):
    titles = [element["text"] for element in dom_of(chromium, a_full_record()).tags("title")]
    assert any(
        title.startswith("node-a: draining\n12:00:30 to 12:00:40, 10 s\ni-0123456789abcdef0") for title in titles
    )
    assert "web: 1 of 3 ready, PDB minimum 2\nsince 12:00:31" in titles
    assert "3. 12:00:31 blocked: PodDisruptionBudget web refused" in titles


def test_what_a_record_says_stays_text(chromium):
    nasty = "</title></svg><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    record = a_record(
        nodes=[a_node(nasty, zone=nasty, spans=[a_span()])], workloads=[a_workload(nasty)], marks=[a_mark(text=nasty)]
    )
    dom = dom_of(chromium, record)
    assert dom.tags("script") == dom.tags("img") == []
    assert dom.tags("title")[0]["text"].startswith("Leeward: 2024-05-01")
    assert nasty in [element["text"] for element in dom.tags("td")]


@pytest.mark.parametrize("nodes", [0, 100])
def test_no_node_and_a_hundred_nodes_make_a_page(chromium, nodes):
    record = a_record(nodes=[a_node(f"node-{n}", zone=f"us-east-1{'abc'[n % 3]}") for n in range(nodes)])
    assert len(dom_of(chromium, record).tags("div", "node")) == nodes


def test_it_prints_on_landscape_pages(chromium, tmp_path):
    target = tmp_path / "report.pdf"
    chromium(page(a_full_record()), "--no-pdf-header-footer", f"--print-to-pdf={target}")
    printed = Path(target).read_bytes()
    width, height = map(float, re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", printed).groups())
    assert width > height
    assert printed.count(b"/Type /Page\n") <= 2
