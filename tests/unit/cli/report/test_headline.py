"""Headline of a run without a sentence of its own, and its figures."""

from leeward.cli.report.headline import figures, headline
from tests.unit.cli.report.run import a_full_record, a_mark, a_node, a_record, a_span, a_workload

GONE = a_node(spans=[a_span("draining", 10, 40), a_span("terminated", 40)])


def values(record):
    return {figure.label: figure.value for figure in figures(record)}


def test_it_counts_nodes_and_names_what_workloads_lost():
    launched = a_node("node-b", spans=[a_span("launching", 5, 20)])
    assert headline(a_record(nodes=[GONE, launched], workloads=[a_workload()])) == (
        "1 node left and 1 came in 1 min 00 s; no workload fell below its PDB minimum"
    )
    assert headline(a_full_record()).endswith("; web fell below its PDB minimum")
    broken = [a_workload(name, ready=((0, 3), (9, 1))) for name in ("web", "api")]
    assert headline(a_record(workloads=broken)).endswith("; 2 workloads fell below their PDB minimum")


def test_without_a_budget_it_says_nothing_of_minima():
    assert headline(a_record(workloads=[a_workload(minimum=None)])) == "0 nodes left in 1 min 00 s"


def test_the_sentence_of_the_record_comes_first():
    assert headline(a_record(nodes=[GONE], headline="i-0b was drained manually")) == "i-0b was drained manually"


def test_figures_are_of_what_occurred():
    assert values(a_record()) == {}
    assert values(a_record(nodes=[GONE])) == {"node left": "1", "drain": "30 s"}
    watched = values(a_record(workloads=[a_workload(ready=((0, 3), (9, 2))), a_workload("batch", minimum=None)]))
    assert watched == {"of 2 workloads below the PDB minimum": "0", "ready at the lowest: web": "2 of 3"}


def test_words_follow_their_numbers():
    other = a_node("node-b", spans=[a_span("draining", 10, 50), a_span("terminated", 50)])
    marks = [a_mark(kind="blocked"), a_mark(kind="blocked")]
    assert values(a_record(nodes=[GONE, other], marks=marks)) == {
        "nodes left": "2",
        "longest drain": "40 s",
        "times blocked": "2",
    }


def test_steps_of_leeward_itself_are_not_counted_as_blocks_and_faults():
    marks = [a_mark(kind="fault", internal=True), a_mark(kind="fault"), a_mark(kind="blocked")]
    assert values(a_record(marks=marks)) == {"time blocked": "1", "fault": "1"}
