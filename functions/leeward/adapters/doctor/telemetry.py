"""Part of `ports.doctor.Deployment` that reads EventBridge and CloudWatch: rules, alarms and metrics."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from leeward.adapters.aws.clients import AwsClients, pages
from leeward.adapters.aws.errors import aws_call
from leeward.doctor import expected
from leeward.doctor.facts import Alarm, Counts, MessageAge
from leeward.errors import ObjectGoneError

COUNTED = ("Errors", "Throttles")
MEASURED = timedelta(minutes=5)  # an older value does not describe the present
MINUTE, FIVE_MINUTES = 60, 300  # seconds of a period, at whose beginnings CloudWatch counts


class Signs:
    """Rules, alarms and metrics, one call each, with its pages."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def rules(self, prefix: str) -> Mapping[str, bool]:
        """Read the rules of the default bus with ListRules, then those of the webhooks' bus, which exists where a
        cluster names a webhook.
        """
        found = self._rules_of(prefix)
        with contextlib.suppress(ObjectGoneError):
            found |= self._rules_of(prefix, EventBusName=expected.WEBHOOK_BUS)
        return found

    def _rules_of(self, prefix: str, **bus: str) -> dict[str, bool]:
        with aws_call("events:ListRules", prefix):
            listed = pages(self._clients.get("events"), "list_rules", NamePrefix=prefix, **bus)
            return {raw["Name"]: raw.get("State") != "DISABLED" for page in listed for raw in page.get("Rules", ())}

    def targets(self, rule: str) -> Sequence[str]:
        """Read the targets with ListTargetsByRule."""
        with aws_call("events:ListTargetsByRule", rule):
            listed = pages(self._clients.get("events"), "list_targets_by_rule", Rule=rule)
            return [raw["Arn"] for page in listed for raw in page.get("Targets", ())]

    def alarms(self, prefix: str) -> Mapping[str, Alarm]:
        """Read the alarms with DescribeAlarms."""
        with aws_call("cloudwatch:DescribeAlarms", prefix):
            listed = pages(self._clients.get("cloudwatch"), "describe_alarms", AlarmNamePrefix=prefix)
            return {raw["AlarmName"]: _alarm(raw) for page in listed for raw in page.get("MetricAlarms", ())}

    def counts(self, functions: Iterable[str], since: datetime, now: datetime) -> Mapping[str, Counts]:
        """Call GetMetricData once for all functions. Without a datum a function was not called, or had no error."""
        named = tuple(functions)
        queries = [
            _query(f"{metric.lower()}{place}", "AWS/Lambda", metric, {"FunctionName": name}, "Sum", FIVE_MINUTES)
            for place, name in enumerate(named)
            for metric in COUNTED
        ]
        sums = {name: sum(values) for name, values in self._data(queries, since, now)}
        return {
            name: Counts(errors=int(sums.get(f"errors{place}", 0)), throttles=int(sums.get(f"throttles{place}", 0)))
            for place, name in enumerate(named)
        }

    def message_age(self, queue: str, now: datetime) -> MessageAge:
        """Call GetMetricData: the latest minute that SQS has reported, and the latest failure of fn interruption."""
        by_queue, by_service = {"QueueName": queue}, {"service": "interruption"}
        queries = [
            _query("unread", "AWS/SQS", "ApproximateAgeOfOldestMessage", by_queue, "Maximum", MINUTE),
            _query("failing", expected.METRICS, expected.FAILING[queue], by_service, "Maximum", MINUTE),
        ]
        latest = {name: values[0] for name, values in self._data(queries, now - MEASURED, now) if values}
        return MessageAge(unread=latest.get("unread"), failing=latest.get("failing"))

    def _data(
        self, queries: list[dict[str, Any]], since: datetime, now: datetime
    ) -> Iterator[tuple[str, Sequence[float]]]:
        """Yield (id, values), the latest first."""
        with aws_call("cloudwatch:GetMetricData", queries[0]["MetricStat"]["Metric"]["Namespace"]):
            for page in pages(
                self._clients.get("cloudwatch"),
                "get_metric_data",
                MetricDataQueries=queries,
                StartTime=since,
                EndTime=now,
                ScanBy="TimestampDescending",
            ):
                for raw in page.get("MetricDataResults", ()):
                    yield raw["Id"], raw.get("Values") or ()


def _query(
    name: str, namespace: str, metric: str, dimensions: Mapping[str, str], statistic: str, period: int
) -> dict[str, Any]:
    listed = [{"Name": key, "Value": value} for key, value in dimensions.items()]
    what = {"Namespace": namespace, "MetricName": metric, "Dimensions": listed}
    return {"Id": name, "MetricStat": {"Metric": what, "Period": period, "Stat": statistic}, "ReturnData": True}


def _alarm(raw: Mapping[str, Any]) -> Alarm:
    return Alarm(
        state=raw.get("StateValue", ""),
        reason=raw.get("StateReason") or "",
        description=raw.get("AlarmDescription") or "",
        notifies=bool(raw.get("AlarmActions")) and raw.get("ActionsEnabled", True),
        topics=tuple(action for action in raw.get("AlarmActions") or () if action.split(":")[2:3] == ["sns"]),
    )
