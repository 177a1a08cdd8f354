"""The alarms of one deployment: each asks for somebody, and says in its description for what.

A topic in the settings (`alarmTopic`) gets both the alarm and its end; without one they are on the dashboard only."""

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Alarm when the metric is at least `at_least` (or, where that is None, below `below`) for `periods` in a row."""

    at_least: float | None = None
    below: float | None = None
    periods: int = 1


class Alarms(Construct):
    """Where the rooms put their alarms."""

    def __init__(self, scope: Construct, topic: str | None) -> None:
        super().__init__(scope, "Alarms")
        self._topic = sns.Topic.from_topic_arn(self, "Topic", topic) if topic else None
        self.all: list[cloudwatch.Alarm] = []

    def add(self, name: str, metric: cloudwatch.IMetric, threshold: Threshold, description: str) -> None:
        """One alarm. No data is quiet, except where too little is what alarms."""
        too_little = threshold.at_least is None
        comparison = cloudwatch.ComparisonOperator
        missing = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=names.alarm(name),
            alarm_description=description,
            metric=metric,
            threshold=(threshold.below if too_little else threshold.at_least) or 0,
            comparison_operator=(
                comparison.LESS_THAN_THRESHOLD if too_little else comparison.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            evaluation_periods=threshold.periods,
            treat_missing_data=missing.BREACHING if too_little else missing.NOT_BREACHING,
        )
        if self._topic is not None:
            action = actions.SnsAction(self._topic)
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
        self.all.append(alarm)

    def stopped(self, name: str, function: lambda_.Function, minutes: int, description: str) -> None:
        """Alarm when a scheduled function has not come to a good end once in that many minutes."""
        period = Duration.minutes(minutes)
        done = cloudwatch.MathExpression(
            expression="FILL(calls, 0) - FILL(errors, 0)",
            label="runs that came to a good end",
            period=period,
            using_metrics={
                "calls": function.metric_invocations(statistic="Sum", period=period),
                "errors": function.metric_errors(statistic="Sum", period=period),
            },
        )
        self.add(name, done, Threshold(below=1), description)
