"""The page as text: complete, self-contained, and whatever a record's texts hold, only text."""

import re
from html.parser import HTMLParser

import pytest

from leeward.cli.report.layout import cut, length
from leeward.cli.report.page import page
from leeward.cli.report.record import Phase
from tests.unit.cli.report.run import a_full_record, a_mark, a_node, a_record, a_span, a_workload, at

NASTY = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x00\ud800"
VOID = {"meta"}


class Document(HTMLParser):
    """Tags, attributes and texts; a tag that closes another is an error."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.rows, self.open = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in {"td", "th"}:
            self.rows[-1][-1] += data

    def having(self, word):
        return [attributes for _, attributes in self.tags if word in (attributes.get("class") or "").split()]


RECORDS = {
    "empty": a_record(),
    "without length": a_record(end=0),
    "full": a_full_record(),
    "nodes alone": a_record(nodes=[a_node(), a_node("idle", spans=[])]),
    "workloads alone": a_record(workloads=[a_workload(desired=0, minimum=None, ready=())]),
    "nasty": a_record(
        nodes=[a_node(NASTY, zone=NASTY, group=NASTY, instance=NASTY)],
        workloads=[a_workload(NASTY)],
        marks=[a_mark(text=NASTY, node=NASTY), a_mark(text=NASTY)],
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_the_page_is_well_formed_and_loads_and_runs_nothing(record):
    text = page(record)
    document = Document(text)
    text.encode("utf-8")
    tags = {tag for tag, _ in document.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "image", "use", "foreignobject"}
    attributes = {(name, value) for _, found in document.tags for name, value in found.items()}
    assert not [name for name, _ in attributes if name.startswith("on") or name in {"src", "xlink:href", "style"}]
    assert all(value.startswith("#mark-") for name, value in attributes if name == "href")
    assert not re.search(r"@import|url\((?!#)", text)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_every_span_and_mark_and_workload_is_in_a_table(record):
    rows = Document(page(record)).rows
    cells = [row for row in rows if row]
    spans = sum(max(len(node.spans), 1) for node in record.nodes)
    heads = sum(bool(part) for part in (record.nodes, record.workloads, record.marks))
    assert len(cells) == spans + len(record.workloads) + len(record.marks) + heads


def test_a_row_has_all_facts_of_its_span():
    rows = Document(page(a_full_record())).rows
    facts = ["node-a", "i-0123456789abcdef0", "web", "us-east-1a", "spot"]
    assert [*facts, "draining", "2024-05-01 12:00:30", "2024-05-01 12:00:40", "10 s"] in rows
    assert ["3", "2024-05-01 12:00:31", "31 s", "blocked", "web", "PodDisruptionBudget web refused"] in rows


def test_each_phase_is_named_and_has_a_pattern_of_its_own():
    text = page(a_full_record())
    document = Document(text)
    for phase in Phase:
        assert phase.value in document.texts
    for phase in set(Phase) - {Phase.TERMINATED}:
        assert text.count(f'<pattern id="{phase.value}"') == 1
        assert f'fill="url(#{phase.value})"' in text
    assert document.having("gone")


def test_a_glyph_leads_to_its_row():
    document = Document(page(a_full_record()))
    ids = [attributes["id"] for _, attributes in document.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"] for attributes in document.having("mark")]
    assert sorted(targets) == ["#mark-1", "#mark-2", "#mark-3", "#mark-4"]
    assert {target.removeprefix("#") for target in targets} <= set(ids)


def test_the_headline_says_whether_workloads_suffered():
    calm = a_record(nodes=[a_node(spans=[a_span("terminated")])], workloads=[a_workload()])
    assert "<h1>1 node went, no workload fell below its PDB minimum</h1>" in page(calm)
    assert "<h1>1 node went, 1 workload fell below the PDB minimum</h1>" in page(a_full_record())
    assert "<h1>0 nodes went</h1>" in page(a_record(workloads=[a_workload(minimum=None)]))


def test_where_a_workload_was_under_its_minimum_it_is_hatched():
    assert len(Document(page(a_full_record())).having("under")) == 1
    assert not Document(page(a_record(workloads=[a_workload()]))).having("under")


def test_desired_and_minimum_are_lines_of_their_own():
    document = Document(page(a_record(workloads=[a_workload(), a_workload("batch", minimum=None)])))
    in_chart = [attributes for attributes in document.having("minimum") if float(attributes["x1"]) > 0]
    assert len(in_chart) == 1
    assert len([attributes for attributes in document.having("desired") if float(attributes["x1"]) > 0]) == 2


def test_a_long_name_is_cut_and_stands_whole_in_the_title():
    name = "ip-10-40-0-4.a-very-long-private-domain.compute.internal"
    document = Document(page(a_record(nodes=[a_node(name)])))
    assert cut(name, 28) in document.texts
    assert any(text.startswith(name) for text in document.texts)


def test_a_hundred_nodes_stand_by_zone_in_low_lanes():
    nodes = [a_node(f"node-{n}", zone=f"us-east-1{'abc'[n % 3]}", instance=f"i-{n}") for n in range(100)]
    document = Document(page(a_record(nodes=nodes)))
    assert len(document.having("node")) == 100
    heads = [text for text in document.texts if re.fullmatch(r"us-east-1\w · \d+ nodes", text)]
    assert heads == ["us-east-1a · 34 nodes", "us-east-1b · 33 nodes", "us-east-1c · 33 nodes"]
    (chart,) = document.having("chart")
    assert float(chart["viewbox"].split()[3]) < 100 * 24 + 200
    assert "tall" in chart["class"].split()  # several pages in print, where a lower picture is fitted to one


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (65, "1 min 05 s"), (7_260, "2 h 01 min"), (90_000, "1 d 01 h")],
)
def test_lengths_are_reported_as_people_say_them(seconds, words):
    assert length(at(seconds) - at(0)) == words
