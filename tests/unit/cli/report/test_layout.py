"""Where things stand: the scale, the ticks, the order of lanes, marks that share a glyph."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from leeward.cli.report.layout import NARROW, TICK_SPACE, WIDE, Scale, clusters, lanes, numbered_marks, ticks
from tests.unit.cli.report.run import a_full_record, a_mark, a_node, a_record, a_span, a_workload, at


def test_the_run_fills_the_width():
    scale = Scale.of(a_record(end=60))
    assert (scale.x(at(0)), scale.x(at(30)), scale.x(at(60))) == (0, 50, 100)


def test_what_lies_outside_stands_at_the_edge():
    scale = Scale.of(a_record(start=10, end=60))
    assert (scale.x(at(-999)), scale.x(at(999))) == (0, 100)


@pytest.mark.parametrize("start", [0, (datetime.max.replace(tzinfo=UTC) - at(0)).total_seconds() - 1])
def test_a_run_without_length_has_a_scale_too(start):
    scale = Scale.of(a_record(start=start, end=start))
    assert scale.end - scale.start == timedelta(seconds=1)


@pytest.mark.parametrize("seconds", [0.004, 0.5, 1, 7, 60, 3599, 86_400, 40 * 86_400, 9_000 * 86_400, 200_000 * 86_400])
@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_ticks_have_space_for_their_labels(seconds, width):
    found = ticks(Scale.of(a_record(end=seconds)), width)
    assert 1 <= len(found) <= width / TICK_SPACE + 1
    assert all((later.x - earlier.x) * width / 100 > TICK_SPACE - 1 for earlier, later in pairwise(found))


def test_ticks_say_no_more_than_they_must():
    assert [tick.label for tick in ticks(Scale.of(a_record(end=20)), WIDE)][:2] == ["12:00:00", "12:00:02"]
    assert [tick.label for tick in ticks(Scale.of(a_record(end=7200)), WIDE)][:2] == ["12:00", "12:15"]
    assert "02 May" in [tick.label for tick in ticks(Scale.of(a_record(end=86_400)), WIDE)]


def test_nodes_stand_by_zone_then_group_then_when_they_came():
    late = a_node("a-late", spans=[a_span(begin=30)])
    nodes = [a_node("z", zone="us-east-1b"), late, a_node("b-early"), a_node("other", group="db")]
    found = lanes(a_record(nodes=nodes))
    drawn = [(zone.name, [node.name for node, _ in zone.nodes]) for zone in found.zones]
    assert drawn == [("us-east-1a", ["other", "b-early", "a-late"]), ("us-east-1b", ["z"])]


def test_marks_are_numbered_in_the_order_of_time():
    assert [numbered.mark.text for numbered in numbered_marks(a_full_record())] == [
        "a spot warning",
        "replacement asked for",
        "PodDisruptionBudget web refused",
        "the API server did not answer",
    ]


def test_every_mark_stands_in_exactly_one_lane():
    marks = [
        a_mark(node="node-a", workload="web", text="both"),
        a_mark(workload="web", text="workload"),
        a_mark(text="absent"),
        a_mark(node="stranger", text="unknown node"),
        a_mark(workload="stranger", text="unknown workload"),
    ]
    found = lanes(a_record(nodes=[a_node()], workloads=[a_workload()], marks=marks))
    assert [n.mark.text for n in found.zones[0].nodes[0][1]] == ["both"]
    assert [n.mark.text for n in found.workloads[0][1]] == ["workload"]
    assert [n.mark.text for n in found.run] == ["absent", "unknown node", "unknown workload"]


def test_of_two_nodes_with_one_name_the_mark_is_the_one_that_was_there():
    first = a_node(instance="i-first", spans=[a_span(begin=0, end=20)])
    second = a_node(instance="i-second", spans=[a_span(begin=30, end=60)])
    found = lanes(a_record(nodes=[second, first], marks=[a_mark(10, node="node-a"), a_mark(40, node="node-a")]))
    of = {node.instance: [n.number for n in marks] for node, marks in found.zones[0].nodes}
    assert of == {"i-first": [1], "i-second": [2]}


def test_marks_that_would_cover_each_other_share_a_glyph():
    record = a_record(marks=[a_mark(10), a_mark(10.1), a_mark(10.2), a_mark(40)])
    found = clusters(tuple(numbered_marks(record)), Scale.of(record), WIDE)
    assert [[n.number for n in cluster.marks] for cluster in found] == [[1, 2, 3], [4]]


def test_a_phone_has_space_for_fewer_glyphs():
    record = a_record(marks=[a_mark(10), a_mark(13)])
    marks = tuple(numbered_marks(record))
    assert [len(clusters(marks, Scale.of(record), width)) for width in (WIDE, NARROW)] == [2, 1]


def test_where_the_track_ends_the_number_of_others_stands_left_and_has_its_space():
    record = a_record(marks=[a_mark(55), a_mark(59.5), a_mark(59.6)])
    marks = tuple(numbered_marks(record))
    apart, together = (clusters(marks, Scale.of(record), width) for width in (4 * WIDE, WIDE))
    assert [(len(cluster.marks), cluster.flipped) for cluster in apart] == [(1, False), (2, True)]
    assert [(len(cluster.marks), cluster.flipped) for cluster in together] == [(3, False)]


def test_steps_of_leeward_itself_have_no_number_and_no_glyph():
    record = a_record(nodes=[a_node()], marks=[a_mark(1, node="node-a", internal=True), a_mark(2, node="node-a")])
    assert [(n.number, n.mark.at) for n in numbered_marks(record)] == [(1, at(2))]
    ((_, marks),) = lanes(record).zones[0].nodes
    assert [n.mark.at for n in marks] == [at(2)]


@pytest.mark.parametrize(
    ("begin", "end", "shown"),
    [(-9, -1, False), (-9, 0, False), (-9, 1, True), (0, 0, True), (60, 60, True), (61, 62, False)],
)
def test_only_what_is_within_the_run_is_drawn(begin, end, shown):
    assert Scale.of(a_record(end=60)).shows(at(begin), at(end)) is shown
