"""Redelivery of a failed record: often in the two minutes of a spot warning or of a short hook, then less and less
often. Delays that went on doubling would leave a minute without a delivery when what failed works again.

The queue's own visibility time-out has to outlast the function, which is longer than that. The alarms on failed
messages (`infra/interruption.py`) look back further than the longest delay."""

from collections.abc import Mapping

from leeward.errors import LeewardError, RetryableError
from leeward.interruption.batch import BatchResult
from leeward.interruption.decision import RecordOutcome
from leeward.isolation import isolate_errors
from leeward.ports import Ports

SOON = (1, 2, 4, 8, *(15,) * 7, *(30,) * 4)  # seconds: two minutes, then two more
LONGEST_SECONDS = 160
TRIES = 3  # each has three of the SDK's: without the request a record returns a minute later


def delay_seconds(receives: int) -> int:
    """Return 1, 2, 4, 8, 15 ... seconds after the first, second, third delivery; sixty deliveries take over two
    hours.
    """
    return SOON[max(receives, 1) - 1] if receives <= len(SOON) else LONGEST_SECONDS


def redeliver_soon(result: BatchResult, ports: Ports) -> str | None:
    """Request an early redelivery. A refusal only means a later delivery; the returned sentence says so for the log."""
    delays: dict[str, dict[str, int]] = {}
    for record in (handled.record for handled in result.results if handled.decision.outcome is RecordOutcome.RETRY):
        if record.receipt:
            delays.setdefault(record.queue, {})[record.receipt] = delay_seconds(record.receives)
    errors: list[LeewardError] = []
    for queue, of_queue in delays.items():
        with isolate_errors(errors.append):
            _ask(queue, of_queue, ports, TRIES)
    return f"failed records come back only after the queue's visibility time-out: {errors[0]}" if errors else None


def _ask(queue: str, delays: Mapping[str, int], ports: Ports, tries: int) -> None:
    """Request it, with retries if they may help; two requests equal one."""
    try:
        ports.redelivery.after(delays, queue=queue)
    except RetryableError:
        if tries == 1:
            raise
        _ask(queue, delays, ports, tries - 1)
