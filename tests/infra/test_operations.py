"""What an operator sees: alarms that name what to do, and one dashboard that shows metrics which really exist."""

import ast
import json
import re
from pathlib import Path

import pytest

from infra import dashboard
from leeward.disruption.run import DisruptionRun
from leeward.disruption.run import Next as DisruptionNext
from leeward.termination.run import Next as TerminationNext
from leeward.termination.run import Run as TerminationRun
from leeward.upgrade.run import Next as UpgradeNext
from leeward.upgrade.run import Run as UpgradeRun
from tests.architecture.metrics import METRICS
from tests.infra.conftest import EVERYTHING

ALARM = "AWS::CloudWatch::Alarm"
UPGRADES = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-group-upgrade"
MANAGED = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-managed-node-group-upgrade"
DISRUPTIONS = "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-disruption"
PACKAGES = Path("functions/leeward")


def alarms(template):
    return {alarm["AlarmName"]: alarm for alarm in template.resources(ALARM).values()}


def dimensions(alarm):
    return {dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]}


@pytest.mark.parametrize(
    ("name", "metric", "dimension", "threshold", "silence"),
    [
        (
            "dead-letters",
            "ApproximateNumberOfMessagesVisible",
            {"QueueName": "QueueDeadLetters9B423CAD.QueueName"},
            1,
            "notBreaching",
        ),
        (
            "queue-age",
            "ApproximateAgeOfOldestMessage",
            {"QueueName": "QueueInterruption064C8957.QueueName"},
            60,
            "notBreaching",
        ),
        ("termination-failed", "ExecutionsFailed", None, 1, "notBreaching"),
        ("termination-timed-out", "ExecutionsTimedOut", None, 1, "notBreaching"),
        ("upgrade-failed", "ExecutionsFailed", {"StateMachineArn": UPGRADES}, 1, "notBreaching"),
        ("upgrade-timed-out", "ExecutionsTimedOut", {"StateMachineArn": UPGRADES}, 1, "notBreaching"),
        ("managed-upgrade-failed", "ExecutionsFailed", {"StateMachineArn": MANAGED}, 1, "notBreaching"),
        ("managed-upgrade-timed-out", "ExecutionsTimedOut", {"StateMachineArn": MANAGED}, 1, "notBreaching"),
        ("disruption-failed", "ExecutionsFailed", {"StateMachineArn": DISRUPTIONS}, 1, "notBreaching"),
        ("disruption-timed-out", "ExecutionsTimedOut", {"StateMachineArn": DISRUPTIONS}, 1, "notBreaching"),
        ("disruption-planner-stopped", "Errors", {"FunctionName": "leeward-disruption-planner"}, 1, "missing"),
        ("reconciler-stopped", "Errors", {"FunctionName": "leeward-reconciler"}, 1, "missing"),
        ("sync-stopped", "Errors", {"FunctionName": "leeward-sync"}, 1, "missing"),
        (
            "events-undelivered",
            "ApproximateNumberOfMessagesVisible",
            {"QueueName": "NotificationsUndelivered3C0CB601.QueueName"},
            1,
            "notBreaching",
        ),
    ],
)
def test_an_alarm_watches_what_its_name_says(template, name, metric, dimension, threshold, silence):
    alarm = alarms(template)[f"leeward-{name}"]
    assert (alarm["MetricName"], alarm["Threshold"]) == (metric, threshold)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["TreatMissingData"] == silence
    expected = dimension or {
        "StateMachineArn": "arn:aws:states:us-east-1:111122223333:stateMachine:leeward-node-termination"
    }
    assert dimensions(alarm) == expected
    assert len(alarm["AlarmDescription"].split()) > 8


OWN = (
    ("drains-blocked-long", "DrainsBlockedLong", "reconcile", "Maximum", 1),
    ("hooks-near-their-end", "HooksNearTheirEnd", "reconcile", "Maximum", 1),
    ("pause-forgotten", "PausesForgotten", "reconcile", "Maximum", 1),
    ("facts-stale", "StaleFacts", "termination", "Sum", 1),
    ("calls-throttled", "CallsThrottled", "aws", "Sum", 100),
)


@pytest.mark.parametrize(("name", "metric", "service", "statistic", "threshold"), OWN)
def test_an_alarm_on_our_own_metric_watches_one_that_the_functions_declare(
    template, name, metric, service, statistic, threshold
):
    alarm = alarms(template)[f"leeward-{name}"]
    assert (alarm["Namespace"], alarm["MetricName"], dimensions(alarm)) == ("Leeward", metric, {"service": service})
    assert (alarm["Statistic"], alarm["Threshold"], alarm["TreatMissingData"]) == (statistic, threshold, "notBreaching")
    assert metric in {name for names in METRICS.values() for name in names}


def test_lambda_throttles_of_fn_interruption_alarm(template):
    alarm = alarms(template)["leeward-interruption-throttled"]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Threshold"]) == ("AWS/Lambda", "Throttles", 1)
    assert dimensions(alarm) == {"FunctionName": "leeward-interruption"}


def test_there_are_no_other_alarms(template):
    assert len(alarms(template)) == 21


RUNBOOKS = Path("docs/runbooks.md").read_text()


def test_each_alarm_links_to_its_runbook_and_each_runbook_has_its_alarm(template):
    sections = re.findall(r"^### ([a-z-]+)$", RUNBOOKS, re.MULTILINE)
    assert sorted(sections) == sorted(name.removeprefix("leeward-") for name in alarms(template))
    for name, alarm in alarms(template).items():
        assert alarm["AlarmDescription"].endswith(f" Runbook: docs/runbooks.md#{name.removeprefix('leeward-')}")


def test_each_runbook_says_what_it_means_what_to_check_what_to_do_and_what_follows_otherwise():
    for section in re.split(r"^### ", RUNBOOKS, flags=re.MULTILINE)[1:]:
        for part in ("**Means**", "**If you do nothing**", "**Check**", "**Fix**"):
            assert part.lower() in section.lower(), section.splitlines()[0]


def test_an_operator_s_own_page_of_runbooks_is_linked(everything):
    page = EVERYTHING["runbooks"]
    assert all(f"Runbook: {page}#" in alarm["AlarmDescription"] for alarm in alarms(everything).values())


def test_a_reconciler_without_a_success_for_five_minutes_alarms(template):
    """Errors is 0 or 1 with every call: a minimum of 1 says that all failed, no data that none was made."""
    alarm = alarms(template)["leeward-reconciler-stopped"]
    assert (alarm["Statistic"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Minimum", 300, 1)


def test_the_operators_topic_gets_the_alarm_and_its_end(template, everything):
    for alarm in alarms(everything).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [EVERYTHING["alarmTopic"]]
    assert not [alarm for alarm in alarms(template).values() if "AlarmActions" in alarm]


def test_a_scheduled_function_that_stops_notifies_and_a_new_deployment_is_quiet(everything):
    """Missing data are a change to INSUFFICIENT_DATA, the state in which every alarm begins."""
    stopped = {name for name, alarm in alarms(everything).items() if "InsufficientDataActions" in alarm}
    assert stopped == {"leeward-reconciler-stopped", "leeward-disruption-planner-stopped", "leeward-sync-stopped"}
    for name in stopped:
        assert alarms(everything)[name]["InsufficientDataActions"] == [EVERYTHING["alarmTopic"]]
    assert "breaching" not in {alarm["TreatMissingData"] for alarm in alarms(everything).values()}


def board(template):
    return json.loads(template.one("AWS::CloudWatch::Dashboard")["DashboardBody"])


def declared(package):
    """Every name that the package's own modules declare as a constant."""
    trees = [ast.parse(path.read_text()) for path in (PACKAGES / package).glob("*.py")]
    return {
        node.value.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }


@pytest.mark.parametrize(
    ("package", "name"),
    [
        (package, name)
        for group in (dashboard.MESSAGES, dashboard.NODES, dashboard.FIXED, dashboard.UPGRADES, dashboard.RUNS)
        for package, names in group.items()
        for name in names
    ],
)
def test_every_metric_on_the_dashboard_is_one_that_its_package_declares(template, package, name):
    assert name in declared(package)
    assert f'["Leeward","{name}","service","{package}"' in json.dumps(board(template), separators=(",", ":"))


def test_every_metric_of_the_functions_is_on_the_dashboard_or_has_a_reason_why_not(template):
    shown = {
        name
        for group in (dashboard.MESSAGES, dashboard.NODES, dashboard.FIXED, dashboard.UPGRADES, dashboard.RUNS)
        for names in group.values()
        for name in names
    } | {name for names in dashboard.BY_CLUSTER.values() for name in names}
    emitted = {name for names in METRICS.values() for name in names}
    assert sorted(emitted - shown - set(dashboard.NOT_SHOWN)) == []
    assert sorted((shown | set(dashboard.NOT_SHOWN)) - emitted) == []
    assert shown & set(dashboard.NOT_SHOWN) == set()
    for name in (name for names in dashboard.BY_CLUSTER.values() for name in names):
        assert f'MetricName=\\"{name}\\"' in json.dumps(board(template))


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


def test_the_policies_are_parameters_below_their_clusters_path(template, everything):
    (parameter,) = template.resources("AWS::SSM::Parameter").values()
    assert parameter["Name"] == "/leeward/demo/policies/01-default"
    assert (parameter["Type"], parameter["Tier"]) == ("String", "Standard")
    assert json.loads(parameter["Value"])["kind"] == "NodePolicy"
    assert len(everything.resources("AWS::SSM::Parameter")) == 2
