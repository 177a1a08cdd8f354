"""Ports to SQS: the dead-letter queue, and the delay until a failed message is delivered again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class DeadLetters(Protocol):
    """Dead-letter queue, to which malformed messages are sent without a retry."""

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Send the body with the message attributes `reason` and `message_id`, the id of the original message."""
        ...


class Redelivery(Protocol):
    """Delay until a queue delivers failed messages again."""

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Set the delays of messages of one queue. `delays`: receipt handle -> seconds; `queue`: its ARN, empty for the
        interruption queue. An expired handle is skipped: its message is visible already.
        """
        ...
