"""The page as text: complete, self-contained, and whatever a record's texts hold, only text."""

import re
from html.parser import HTMLParser

import pytest

from leeward.cli.report.page import page
from leeward.cli.report.record import Phase
from leeward.cli.report.texts import length
from tests.unit.cli.report.run import a_full_record, a_mark, a_node, a_record, a_workload, at

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
        if {"td", "th"} & set(self.open):
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
def test_every_node_and_mark_and_workload_has_a_row_and_every_span_a_line(record):
    document = Document(page(record))
    heads = sum(bool(part) for part in (record.nodes, record.workloads, record.marks))
    assert len(document.rows) == len(record.nodes) + len(record.workloads) + len(record.marks) + heads
    assert len(document.having("phase")) == sum(len(node.spans) for node in record.nodes)


def test_a_row_has_all_facts_of_its_node_and_mark():
    rows = Document(page(a_full_record())).rows
    (node,) = [row for row in rows if row[0].startswith("node-a")]
    assert node[:2] == ["node-ai-0123456789abcdef0", "web · us-east-1a · spot"]
    assert "draining 12:00:30 to 12:00:40, 10 s" in node[2]
    assert ["3", "12:00:31", "+31 s", "blockedweb", "PodDisruptionBudget web refused"] in rows


def test_a_run_of_two_days_has_dates_in_its_rows():
    rows = Document(page(a_record(end=90_000, marks=[a_mark(86_400)]))).rows
    assert rows[1][1] == "2024-05-02 12:00:00"


def test_steps_of_leeward_itself_are_listed_apart_and_closed():
    marks = [a_mark(text="a spot warning"), a_mark(6, "decision", "answered its hook", node="node-a", internal=True)]
    document = Document(page(a_record(nodes=[a_node()], marks=marks)))
    assert [attributes.get("open") for attributes in document.having("inner")] == [None]
    assert "1 step of Leeward itself" in document.texts
    assert "12:00:06 node-a: answered its hook" in document.texts
    assert not [row for row in document.rows if "answered its hook" in row]
    assert "inner" not in page(a_record(marks=marks[:1])).partition("<body>")[2]


def test_a_long_sentence_opens_and_stands_whole_in_the_page():
    text = "its replacement i-0b is in us-east-1c: " + "a reason that takes its time, " * 9
    document = Document(page(a_record(marks=[a_mark(text=text)])))
    assert text in document.texts
    assert any(len(shown) <= 130 and shown.endswith("…") and text.startswith(shown[:-1]) for shown in document.texts)


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
    assert sorted(set(targets)) == ["#mark-1", "#mark-2", "#mark-3", "#mark-4"]
    assert len(targets) == 2 * 4  # for a screen and for a phone
    assert {target.removeprefix("#") for target in targets} <= set(ids)


def test_where_a_workload_was_under_its_minimum_it_is_hatched():
    assert len(Document(page(a_full_record())).having("under")) == 1
    assert not Document(page(a_record(workloads=[a_workload()]))).having("under")


def test_desired_and_minimum_are_lines_of_their_own():
    document = Document(page(a_record(workloads=[a_workload(), a_workload("batch", minimum=None)])))
    in_chart = [attributes for attributes in document.having("minimum") if attributes["x2"] == "100%"]
    assert len(in_chart) == 1
    assert len([attributes for attributes in document.having("desired") if attributes["x2"] == "100%"]) == 2


def test_a_workload_that_never_changed_is_low_and_has_no_labels():
    changed, steady = (
        Document(page(a_record(workloads=[a_workload(ready=ready)]))) for ready in (((0, 3), (9, 2)), ((0, 3),))
    )
    heights = [float(document.having("track")[0]["height"]) for document in (changed, steady)]
    assert heights[1] < heights[0] / 2
    assert (len(changed.having("level")), len(steady.having("level"))) == (2, 0)
    assert "3 of 3 throughout · PDB minimum 2" in steady.texts


def test_a_hundred_nodes_stand_by_zone_in_low_lanes():
    nodes = [a_node(f"node-{n}", zone=f"us-east-1{'abc'[n % 3]}", instance=f"i-{n}") for n in range(100)]
    document = Document(page(a_record(nodes=nodes)))
    assert len(document.having("node")) == 100
    heads = [text for text in document.texts if re.fullmatch(r"us-east-1\w · \d+ nodes", text)]
    assert heads == ["us-east-1a · 34 nodes", "us-east-1b · 33 nodes", "us-east-1c · 33 nodes"]
    assert len(document.having("low")) == 100


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (59.4, "59 s"), (65, "1 min 05 s"), (7_260, "2 h 01 min"), (90_000, "1 d 01 h")],
)
def test_lengths_are_reported_as_people_say_them(seconds, words):
    assert length(at(seconds) - at(0)) == words


def test_the_number_shape_and_link_of_a_glyph_are_those_of_one_row():
    kinds = ("event", "fault", "decision", "blocked", "event", "blocked", "fault", "decision")
    record = a_record(nodes=[a_node()], marks=[a_mark(n / 4, kind, node="node-a") for n, kind in enumerate(kinds)])
    text = page(record)
    drawn = re.findall(
        r'<a class="mark" href="#mark-(\d+)">(?s:.*?)class="shape (\w+)".*?<text class="number"[^>]*>(\d+)</text>', text
    )
    rows = dict(re.findall(r'<tr id="mark-(\d+)">.*?class="shape (\w+)"', text))
    assert len(rows) == len(kinds)
    assert drawn
    assert all(link == number and rows[number] == kind for link, kind, number in drawn)
