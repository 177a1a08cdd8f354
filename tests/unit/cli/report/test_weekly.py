"""Figures of a week: nodes by cause, deadlines kept, node time blocked, dollars saved."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import jsonschema
import pytest

from leeward.cli.report.weekly import calculate, owner_of
from leeward.cli.report.weekly_page import headline, weekly_document, weekly_page
from leeward.model.blocked import BlockedLine
from leeward.model.termination import Cause, CauseKind, Outcome
from tests.unit.cli.report.test_page import Document
from tests.unit.cli.report.weeks import END, MONDAY, a_full_week, a_stay, a_week, an_ended, at

SPOT, DRIFT, MANUAL = CauseKind.SPOT_INTERRUPTION, CauseKind.DRIFTED, CauseKind.MANUAL
GOLDEN = Path(__file__).parent / "golden"
SCHEMA = json.loads(Path("docs/schema/report-weeks.json").read_text())


def seconds(span):
    return None if span is None else span.total_seconds()


def test_the_figures_of_a_full_week_are_the_golden_ones():
    document = weekly_document(calculate(a_full_week()))
    jsonschema.validate({"report": "week.html", **document}, SCHEMA)
    assert document == json.loads((GOLDEN / "weekly.json").read_text())


def test_the_texts_of_its_page_are_the_golden_ones():
    texts = [text.strip() for text in Document(weekly_page(calculate(a_full_week()))).texts if text.strip()]
    shown = [text for text in texts if not text.startswith(":root")]
    assert "\n".join(shown[1:]) + "\n" == (GOLDEN / "weekly.txt").read_text(encoding="utf-8").partition("\n")[2]


def test_a_node_counts_in_the_week_in_which_it_ended():
    records = [
        an_ended(1, DRIFT, -0.05),
        an_ended(2, DRIFT, -0.01),  # claimed before, ended 114 s into the week
        an_ended(3, DRIFT, 24 * 7 - 0.01),
        an_ended(4, DRIFT, 24),
        an_ended(5, DRIFT, 24, outcome=None),
    ]
    assert [one.node for one in calculate(a_week(records)).ended] == ["node-2", "node-4"]


def test_a_node_that_ended_within_the_second_of_the_report_counts():
    """The command's present time has no fractions, and what is read may be a moment later."""
    record = an_ended(1, DRIFT, 24 * 7, saves=1.0)
    ends = [END + timedelta(milliseconds=999), END + timedelta(seconds=1)]
    weeks = [calculate(a_week([replace(record, times={**record.times, "terminated": end})])) for end in ends]
    assert [len(week.ended) for week in weeks] == [1, 0]
    assert weeks[0].savings.so_far == 0


def test_a_node_counts_under_the_cause_that_the_others_follow_from():
    hook = Cause(id="hook", kind=CauseKind.ASG_TERMINATE, at=at(1))
    record = an_ended(1, SPOT, 1, deadline=120)
    (row,) = calculate(a_week([replace(record, causes=(hook, *record.causes))])).causes
    assert (row.cause, row.nodes, row.pods) == (SPOT, 1, 5)


def test_the_most_nodes_stand_first():
    week = calculate(a_week([an_ended(1, SPOT, 1), an_ended(2, DRIFT, 1), an_ended(3, DRIFT, 2)]))
    assert [(row.cause, row.nodes) for row in week.causes] == [(DRIFT, 2), (SPOT, 1)]


@pytest.mark.parametrize(
    ("given", "kept", "spare"),
    [
        ({"deadline": 120, "drained": 74}, True, 46),
        ({"deadline": 120, "drained": 120}, True, 0),
        ({"deadline": 120, "drained": 121}, False, None),
        ({"deadline": 120, "drained": None}, False, None),
        ({"deadline": 120, "drained": 118, "blocked_by": ("shop/api-1: pdb shop/api",)}, False, None),
        ({"deadline": 120, "drained": 74, "blocked_by": ("the target group api still has it",)}, True, 46),
        ({}, None, None),
    ],
)
def test_a_deadline_is_kept_where_every_pod_had_left_by_then(given, kept, spare):
    (one,) = calculate(a_week([an_ended(1, SPOT, 1, **given)])).ended
    assert (one.kept, seconds(one.spare)) == (kept, spare)


def test_an_instance_that_ended_before_its_drain_neither_keeps_nor_misses_a_deadline():
    record = an_ended(1, SPOT, 1, deadline=120, drained=None)
    never = {name: moment for name, moment in record.times.items() if name not in {"begun", "draining"}}
    week = calculate(a_week([replace(record, times=never)]))
    assert (week.ended[0].kept, week.deadlines) == (None, (0, 0))


def test_maintenance_that_has_passed_by_the_end_of_the_week_still_is_a_deadline():
    record = an_ended(1, CauseKind.SCHEDULED_CHANGE, 1, deadline=7200, drained=600)
    (row,) = calculate(a_week([record])).causes
    assert (row.kept, row.missed, seconds(row.least)) == (1, 0, 6600)


def test_time_to_spare_is_summed_and_the_least_is_named():
    week = calculate(a_week([an_ended(n, SPOT, n, deadline=120, drained=70 + n) for n in (1, 2, 3)]))
    (row,) = week.causes
    assert (seconds(row.spare), seconds(row.least), week.deadlines) == (49 + 48 + 47, 47, (3, 3))


def blocked(*stays):
    return [
        (row.owner, row.pods, row.nodes, seconds(row.blocked) / 3600) for row in calculate(a_week((), stays)).owners
    ]


def test_two_pods_of_one_node_at_a_time_count_once_and_those_of_two_nodes_twice():
    one = a_stay(begin=1, end=2)
    assert blocked(one, a_stay(pod="shop/api-2", begin=1.5, end=2.5)) == [("pdb shop/api", 2, 1, 1.5)]
    assert blocked(one, a_stay(pod="shop/api-2", begin=3, end=4)) == [("pdb shop/api", 2, 1, 2.0)]
    assert blocked(one, a_stay(instance="i-2")) == [("pdb shop/api", 2, 2, 2.0)]
    assert blocked(one, a_stay(pod="shop/api-2", begin=1.2, end=1.4)) == [("pdb shop/api", 2, 1, 1.0)]


def test_each_owner_has_its_own_time_and_the_longest_stands_first():
    assert blocked(a_stay(end=2), a_stay("pdb shop/web", end=4)) == [
        ("pdb shop/web", 1, 1, 3.0),
        ("pdb shop/api", 1, 1, 1.0),
    ]


def test_only_the_part_within_the_week_counts():
    assert blocked(a_stay(begin=-5, end=1), a_stay(instance="i-2", begin=167, end=200)) == [("pdb shop/api", 2, 2, 2.0)]
    assert blocked(a_stay(begin=-5, end=0), a_stay(begin=168, end=169)) == []


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("shop/api-1: pdb shop/api (allows 0 now, 2 healthy of 2 wanted)", "pdb shop/api"),
        ("shop/api-1: pdb shop/api, pdb shop/all (several select it)", "pdb shop/api"),
        ("shop/api-1: webhook guard.example.com denies it: not today", "webhook guard.example.com"),
        ("shop/api-1: policy keep fails: no such param", "policy keep"),
        ("shop/api-1: eviction fails: timeout", "eviction"),
        ("shop/api-1: no controller: nothing would start it again", "pod shop/api-1"),
    ],
)
def test_the_owner_is_what_the_line_names(line, owner):
    assert owner_of(BlockedLine.read(line)) == owner


def test_savings_count_from_the_end_of_each_node():
    week = calculate(
        a_week([an_ended(n, CauseKind.UNDERUTILIZED, hours, saves=0.5) for n, hours in ((1, 24), (2, 48))])
    )
    assert (week.savings.nodes, week.savings.rate, week.savings.a_month) == (2, 1.0, 730.0)
    assert week.savings.so_far == pytest.approx(0.5 * (144 - 150 / 3600) + 0.5 * (120 - 150 / 3600))


def test_a_node_without_a_price_saves_nothing_that_is_known():
    assert calculate(a_week([an_ended(1, CauseKind.UNDERUTILIZED, 1)])).savings.nodes == 0


def test_a_node_that_went_back_to_service_is_counted_apart():
    back = an_ended(1, MANUAL, 1, outcome=Outcome.RETURNED_TO_SERVICE, failure="PodEvictionFailure")
    cancelled = an_ended(2, MANUAL, 1, outcome=Outcome.RETURNED_TO_SERVICE)
    week = calculate(a_week([back, cancelled]))
    assert (week.returned, week.ended) == (1, ())


def test_the_headline_names_nodes_pods_and_deadlines():
    assert headline(calculate(a_full_week())) == "prod: 18 nodes left, 101 pods moved; 9 of 10 deadlines kept"
    assert headline(calculate(a_week())) == "prod: 0 nodes left, 0 pods moved"


def test_a_week_without_anything_is_a_page_too():
    text = weekly_page(calculate(a_week()))
    assert all(said in text for said in ("No node left.", "No node had a deadline.", "Nothing blocked a drain."))
    assert f"{MONDAY:%Y-%m-%d}" in text
    assert f"{END:%Y-%m-%d}" in text


def test_names_stay_text():
    stay = a_stay("pdb shop/<script>alert(1)</script>")
    record = an_ended(1, SPOT, 1)
    nasty = replace(record, subject=replace(record.subject, node="<img src=x>"))
    document = Document(weekly_page(calculate(a_week([nasty], [stay]))))
    assert not {tag for tag, _ in document.tags} & {"script", "img"}


def test_the_period_of_a_stay_is_never_negative():
    assert calculate(a_week((), [a_stay(begin=2, end=2)])).blocked == timedelta()
