"""Alarms of one deployment. Each needs an operator's action, which its description names; its runbook says more.

A topic in the settings (`alarmTopic`) receives both the alarm and its end; without a topic, alarms are on the dashboard
only.
"""

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.names import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Alarm when the metric is at least `at_least` in one of the last `periods`; `silence_too`: also notify when data
    stop arriving.
    """

    at_least: float
    periods: int = 1
    silence_too: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMetric:
    """Metric that a package of the functions emits, over all clusters."""

    service: str
    name: str
    statistic: str = "Sum"


class Alarms(Construct):
    """Collection to which the packages add their alarms. No metric math, so that the stack deploys to emulators too."""

    def __init__(self, scope: Construct, topic: str | None, names: Names, runbooks: str) -> None:
        super().__init__(scope, "Alarms")
        self._runbooks = runbooks
        self._topic = sns.Topic.from_topic_arn(self, "Topic", topic) if topic else None
        self._names = names
        self.all: list[cloudwatch.Alarm] = []

    def add(self, name: str, metric: cloudwatch.IMetric, threshold: Threshold, description: str) -> None:
        """Add one alarm on the metric. Its description ends with the section of the runbooks that has
        its name.

        Data that stop put an alarm of `silence_too` into INSUFFICIENT_DATA, which notifies. Missing data do not count
        as a breach: a new alarm has no data, and would fire on the first day before the first scheduled call.
        """
        missing = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            alarm_name=self._names.alarm(name),
            alarm_description=f"{description} Runbook: {self._runbooks}#{name}",
            metric=metric,
            threshold=threshold.at_least,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=threshold.periods,
            datapoints_to_alarm=1 if threshold.periods > 1 else None,
            treat_missing_data=missing.MISSING if threshold.silence_too else missing.NOT_BREACHING,
        )
        if self._topic is not None:
            action = actions.SnsAction(self._topic)
            alarm.add_alarm_action(action)
            alarm.add_ok_action(action)
            if threshold.silence_too:
                alarm.add_insufficient_data_action(action)
        self.all.append(alarm)

    def counted(self, name: str, metric: OwnMetric, minutes: int, threshold: Threshold, description: str) -> None:
        """Alarm on one of our own metrics: its statistic over that many minutes."""
        watched = cloudwatch.Metric(
            namespace=self._names.metrics,
            metric_name=metric.name,
            dimensions_map={"service": metric.service},
            statistic=metric.statistic,
            period=Duration.minutes(minutes),
        )
        self.add(name, watched, threshold, description)

    def stopped(self, name: str, function: lambda_.Function, minutes: int, description: str) -> None:
        """Alarm when a scheduled function has not succeeded once in that many minutes.

        Lambda writes Errors as 0 or 1 with every call: a minimum of 1 means that all calls failed, no data that no call
        was made.
        """
        errors = function.metric_errors(statistic="Minimum", period=Duration.minutes(minutes))
        self.add(name, errors, Threshold(at_least=1, silence_too=True), description)
