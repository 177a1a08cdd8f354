"""Entry point of fn interruption: a batch of queue records in, those to be delivered again out."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from leeward.adapters.account_check import answers_account_check
from leeward.adapters.entry import entry_point
from leeward.adapters.initialization import initialize
from leeward.interruption import metrics
from leeward.interruption.batch import Record
from leeward.interruption.origins import process_by_origin
from leeward.interruption.redelivery import redeliver_soon
from leeward.ports import Ports

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ports(context: object) -> Ports:
    """Build the ports at the first call, so that importing this module reads no environment and makes no client."""
    from leeward.adapters import wiring

    return wiring.invocation_ports(context)


@entry_point("interruption")
@answers_account_check
def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Handle an SQS event -> `{"batchItemFailures": [{"itemIdentifier": message id} …]}` (ReportBatchItemFailures)."""
    world = ports(context)
    result = process_by_origin(_records(event, world.clock.now()), world)
    late = redeliver_soon(result, world)
    metrics.handled(result, world.clock.now())
    if late:
        metrics.telemetry.warning(late)
    return {"batchItemFailures": [{"itemIdentifier": failed} for failed in result.failures]}


def _records(event: Mapping[str, Any], now: datetime) -> Sequence[Record]:
    return [
        Record(
            id=raw["messageId"],
            body=raw["body"],
            received=_sent(raw.get("attributes") or {}, now),
            receipt=raw.get("receiptHandle", ""),
            receives=int((raw.get("attributes") or {}).get("ApproximateReceiveCount", 1)),
            queue=raw.get("eventSourceARN", ""),
        )
        for raw in event["Records"]
    ]


def _sent(attributes: Mapping[str, str], now: datetime) -> datetime:
    """Return when the record was sent. SentTimestamp is in milliseconds since 1970."""
    sent = attributes.get("SentTimestamp")
    return EPOCH + timedelta(milliseconds=int(sent)) if sent else now


initialize()
