"""`ports.monitoring.Alarms` on CloudWatch."""

from collections.abc import Iterable

from leeward.adapters.aws.batches import chunks, pages
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call

NAMES_PER_CALL = 100  # DescribeAlarms takes at most 100 names
KINDS = ["MetricAlarm", "CompositeAlarm"]  # without them it returns metric alarms only


class CloudWatchAlarms:
    """Alarms that DescribeAlarms returns by name."""

    def __init__(self, clients: AwsClients) -> None:
        self._clients = clients

    def ringing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the alarms that ring, in the names' order. INSUFFICIENT_DATA does not ring: an alarm on errors has no
        data while there are no errors.
        """
        wanted = tuple(dict.fromkeys(names))
        quiet: set[str] = set()
        for chunk in chunks(wanted, NAMES_PER_CALL):
            with aws_call("cloudwatch:DescribeAlarms", ", ".join(chunk)):
                for page in pages(
                    self._clients.get("cloudwatch"), "describe_alarms", AlarmNames=chunk, AlarmTypes=KINDS
                ):
                    found = [*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())]
                    quiet.update(one["AlarmName"] for one in found if one["StateValue"] != "ALARM")
        return tuple(name for name in wanted if name not in quiet)
