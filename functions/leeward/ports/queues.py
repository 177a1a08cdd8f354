"""Ports to SQS: the dead-letter queue, and the delay until a message is delivered again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class DeadLetters(Protocol):
    """The dead-letter queue, to which malformed messages are sent at once."""

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Put the body into the dead-letter queue with its reason as attribute `reason`."""
        ...


class Redelivery(Protocol):
    """Delay until the queue delivers failed messages again."""

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Set the delays, receipt handle -> seconds, of messages of one queue (its ARN; empty: the interruption queue).
        An expired handle is skipped: its message is visible already.
        """
        ...
