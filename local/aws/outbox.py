"""Messages that the local AWS itself sends: ``aws.*`` events and lifecycle notifications, delivered in order.

Delivery has its own thread, because a rule's target may call back into models whose lock the sender holds.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import boto3
from ministack.core.responses import request_scope
from ministack.services import eventbridge

from local.aws.pins import expect_parameters

logger = logging.getLogger("local.aws.outbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Event as EventBridge delivers it; ``time`` is UTC."""

    source: str
    detail_type: str
    detail: Mapping[str, Any]
    account: str
    region: str
    resources: Sequence[str] = ()
    id: str = field(default_factory=lambda: str(uuid4()))
    time: datetime = field(default_factory=lambda: datetime.now(UTC))
    bus: tuple[str, str] | None = None  # (account, region) of the bus, where it is not the event's own


class Outbox:
    """Ordered queue of deliveries, drained by one daemon thread."""

    def __init__(self) -> None:
        expect_parameters("ministack", eventbridge._dispatch_event, "event", "view")
        self._queue: queue.Queue[Callable[[], None]] = queue.Queue()

    def start(self) -> None:
        """Begin to deliver."""
        threading.Thread(target=self._run, daemon=True, name="local-outbox").start()

    def emit(self, event: Event) -> None:
        """Put an event on the default bus, whatever its source."""
        self._queue.put(lambda: dispatch(event))

    def notify(self, target_arn: str, message: Mapping[str, Any]) -> None:
        """Send a raw notification to an SQS queue or an SNS topic, as Auto Scaling does for a hook's target."""
        self._queue.put(lambda: _send(target_arn, json.dumps(message)))

    def _run(self) -> None:
        while True:
            deliver = self._queue.get()
            try:
                deliver()
            except Exception:
                logger.exception("a delivery failed")


def dispatch(event: Event) -> None:
    """Match an event against the rules of the default bus and deliver it to their targets, now."""
    record = {
        "EventId": event.id,
        "Source": event.source,
        "DetailType": event.detail_type,
        "Detail": json.dumps(event.detail),
        "EventBusName": "default",
        "Time": int(event.time.timestamp()),
        "Resources": list(event.resources),
        "Account": event.account,
        "Region": event.region,
    }
    account, region = event.bus or (event.account, event.region)
    with request_scope(account, region):
        eventbridge._dispatch_event(record)


def _send(target_arn: str, body: str) -> None:
    service, region, account, name = target_arn.split(":", 5)[2:6]
    if service == "sqs":
        client = boto3.client("sqs", region_name=region)
        url = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]
        client.send_message(QueueUrl=url, MessageBody=body)
        return
    subject = "Auto Scaling: Lifecycle action notification"
    boto3.client("sns", region_name=region).publish(TopicArn=target_arn, Message=body, Subject=subject)
