"""The dashboard shows metrics that the functions really emit, in the series in which they emit them."""

import json
import re
from pathlib import Path

import pytest

from infra import dashboard
from infra.dashboard_metrics import NOT_SHOWN
from leeward.disruption.run import DisruptionNext, DisruptionRun
from leeward.termination.run import Next as TerminationNext
from leeward.termination.run import Run as TerminationRun
from leeward.upgrade.run import UpgradeNext, UpgradeRun
from tests.architecture.metrics import METRICS
from tests.infra.emissions import emissions
from tests.infra.test_operations import alarms

SEARCH = re.compile(
    r"""SEARCH\('\{"Leeward",([\w,]+)\} MetricName="(\w+)" service="([\w-]+)"', '(Sum|Maximum)', 300\)"""
)


def board(template):
    return json.loads(template.one("AWS::CloudWatch::Dashboard")["DashboardBody"])


def pictured(template):
    """{(name, service, dimensions beside the service): statistics} of our own metrics in the dashboard's body."""
    shown = {}
    for line in lines(template):
        if line[0] == "Leeward":
            name, dimensions, options = line[1], dict(zip(line[2:-1:2], line[3:-1:2], strict=True)), line[-1]
            series = name, dimensions["service"], frozenset(dimensions) - {"service"}
            shown.setdefault(series, set()).add(options["stat"])
        elif isinstance(line[0], dict):
            schema, name, service, statistic = SEARCH.fullmatch(line[0]["expression"]).groups()
            series = name, service, frozenset(schema.split(",")) - {"service"}
            shown.setdefault(series, set()).add(statistic)
    return shown


def lines(template):
    """Every metric of every graph, with the options that it shares with its neighbour left in place."""
    for widget in board(template)["widgets"]:
        if widget["type"] == "metric":
            yield from widget["properties"].get("metrics", ())


@pytest.fixture
def emitted(capsys, monkeypatch):
    return emissions(capsys, monkeypatch)


def test_every_metric_on_the_dashboard_is_emitted_with_these_dimensions(template, emitted):
    assert pictured(template)
    assert sorted(map(str, pictured(template).keys() - emitted)) == []


def test_every_alarm_on_our_own_metrics_watches_a_series_that_is_emitted(template, emitted):
    watched = {
        (alarm["MetricName"], dimensions["service"], frozenset(dimensions) - {"service"})
        for alarm in alarms(template).values()
        if alarm["Namespace"] == "Leeward"
        for dimensions in [{each["Name"]: each["Value"] for each in alarm["Dimensions"]}]
    }
    assert len(watched) == 7
    assert sorted(map(str, watched - emitted)) == []


def test_every_metric_of_the_functions_is_on_the_dashboard_or_has_a_reason_why_not(template, emitted):
    names, shown = {name for name, _, _ in emitted}, {name for name, _, _ in pictured(template)}
    assert sorted(names - shown - set(NOT_SHOWN)) == []
    assert sorted(set(NOT_SHOWN) - names) == []
    assert sorted(shown & set(NOT_SHOWN)) == []
    assert all(NOT_SHOWN.values())


def test_every_metric_that_a_package_declares_is_emitted(emitted):
    assert {name for names in METRICS.values() for name in names} == {name for name, _, _ in emitted}


def test_points_are_written_by_the_modules_that_declare_metrics_alone():
    modules = {f"functions/leeward/{name.replace('.', '/')}.py" for name in METRICS}
    writers = [
        str(path)
        for path in sorted(Path("functions/leeward").rglob("*.py"))
        if re.search(r"\b(telemetry|kubernetes|aws)\.count\(|\.add_cold_start_metric\(", path.read_text())
    ]
    assert set(writers) == modules


def test_what_is_counted_again_each_minute_is_never_summed(template):
    """Its sum over five minutes would show five times as many."""
    again = {"DrainsBlockedLong", "HooksNearTheirEnd", "PausesInForce", "PausesForgotten", "NodesBlockedByPods"}
    again |= {"NodesBlocked", "FactsOutOfDate"}
    found = {name: statistics for (name, _, _), statistics in pictured(template).items() if name in again}
    assert found == {name: {"Maximum"} for name in again}


@pytest.mark.parametrize(
    "name",
    [
        "NodesInterrupted",
        "NodesTerminated",
        "GroupsUpgraded",
        "NodesDisrupted",
        "DollarsSavedPerHour",
        "NodesBlocked",
        "PausesInForce",
    ],
)
def test_interruptions_upgrades_disruption_savings_blocked_nodes_and_pauses_are_shown_by_group(template, name):
    assert frozenset({"cluster", "group"}) in {by for shown, _, by in pictured(template) if shown == name}


def test_blocked_nodes_are_shown_with_their_cause(template):
    assert ("NodesBlocked", "reconcile", frozenset({"cluster", "cause"})) in pictured(template)


def test_tables_of_the_dashboard_read_fields_that_log_lines_have():
    fields = {*TerminationRun(instance="i-0abc", attempt=1, version=1, next=TerminationNext.DRAIN).to_json(), "step"}
    fields |= {*UpgradeRun(group="web", execution="web-1", next=UpgradeNext.CHECK).to_json()}
    fields |= {*DisruptionRun(cluster="blue", number=1, next=DisruptionNext.DONE).to_json()}
    fields |= {"needs", "message"}  # of the reconciler, tests/unit/reconcile/test_attention.py
    made = {"seen", "cause", "minutes", "terminated", "ended", "last", "said", "runs", "dollarsAnHour"}
    words = {"fields", "filter", "stats", "sort", "limit", "by", "as", "and", "or", "in", "like", "desc"}
    words |= {"latest", "count", "sum", "ispresent", "timestamp"}
    for query in dashboard.QUERIES:
        text = re.sub(r'"[^"]*"|/[^/]*/', "", " ".join(query))
        assert set(re.findall(r"[A-Za-z]+", text)) - words - made <= fields, query


def test_the_dashboard_covers_queue_executions_functions_and_alarms(template):
    text = json.dumps(board(template))
    for metric in ("ApproximateAgeOfOldestMessage", "ExecutionsFailed", "ExecutionTime", "Throttles", "Duration"):
        assert metric in text
    (shown,) = [w["properties"]["alarms"] for w in board(template)["widgets"] if w["type"] == "alarm"]
    assert len(shown) == len(alarms(template))


def test_no_widget_overlaps_another(template):
    taken = set()
    for widget in board(template)["widgets"]:
        cells = {(widget["x"] + x, widget["y"] + y) for x in range(widget["width"]) for y in range(widget["height"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
