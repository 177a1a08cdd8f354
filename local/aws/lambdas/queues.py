"""Event source mappings that read more than ten messages at once, and wait so that a burst becomes few batches."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from ministack.services import sqs

from local.aws.pins import expect_parameters

_RECEIVED_AT_ONCE = 10
LINGER_SECONDS = 0.15  # stands for a batching window of one second: the local stack should answer quickly


def install() -> None:
    """Patch the reading of queues for event source mappings."""
    expect_parameters("ministack", sqs._receive_messages_for_esm, "queue_url", "max_number")
    sqs._receive_messages_for_esm = _in_batches(sqs._receive_messages_for_esm)


def _in_batches(original: Callable[[str, int], list[Any]]) -> Callable[[str, int], list[Any]]:
    @functools.wraps(original)
    def receive(queue_url: str, max_number: int) -> list[Any]:
        batch = original(queue_url, max_number)
        if not batch or max_number <= _RECEIVED_AT_ONCE:
            return batch
        time.sleep(LINGER_SECONDS)
        while len(batch) < max_number:
            more = original(queue_url, max_number - len(batch))
            if not more:
                break
            batch.extend(more)
        return batch

    return receive
