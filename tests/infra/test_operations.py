"""What an operator sees: alarms that name what to do, and one dashboard that shows metrics which really exist."""

import json
from pathlib import Path

import pytest

from leeward.interruption.redelivery import LONGEST_SECONDS
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
        ("interruption-errors", "Errors", {"FunctionName": "leeward-interruption"}, 1, "notBreaching"),
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
    ("facts-stale", "FactsOutOfDate", "sync", "SampleCount", 3),
    ("calls-throttled", "CallsThrottled", "aws", "Sum", 100),
    ("interruptions-failing", "OldestInterruptionRetried", "interruption", "Maximum", 60),
    ("state-changes-failing", "OldestStateChangeRetried", "interruption", "Maximum", 600),
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
    assert len(alarms(template)) == 24


def test_a_message_that_fails_keeps_its_alarm_ringing_until_its_next_delivery(template):
    """It is late in each of its deliveries, which are up to 160 s apart; the alarm looks at single minutes."""
    for name in ("interruptions-failing", "state-changes-failing"):
        alarm = alarms(template)[f"leeward-{name}"]
        assert (alarm["Period"], alarm["DatapointsToAlarm"]) == (60, 1)
        assert alarm["Period"] * (alarm["EvaluationPeriods"] - 1) > LONGEST_SECONDS


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


def test_the_policies_are_parameters_below_their_clusters_path(template, everything):
    (parameter,) = template.resources("AWS::SSM::Parameter").values()
    assert parameter["Name"] == "/leeward/demo/policies/01-default"
    assert (parameter["Type"], parameter["Tier"]) == ("String", "Standard")
    assert json.loads(parameter["Value"])["kind"] == "NodePolicy"
    assert len(everything.resources("AWS::SSM::Parameter")) == 3
