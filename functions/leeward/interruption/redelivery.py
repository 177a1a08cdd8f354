"""When a record that failed is delivered again: soon, because a spot warning has two minutes, then less and less often.

The queue's own visibility time-out has to be six times the function's, which is longer than that."""

from leeward.errors import LeewardError
from leeward.interruption.batch import BatchResult
from leeward.interruption.decision import RecordOutcome
from leeward.ports import Ports

LONGEST_SECONDS = 180


def delay_seconds(receives: int) -> int:
    """1, 2, 4 ... seconds after the first, second, third delivery; ten deliveries take some ten minutes."""
    return min(1 << max(min(receives, 16) - 1, 0), LONGEST_SECONDS)


def redeliver_soon(result: BatchResult, ports: Ports) -> str | None:
    """Ask for it; that it was refused is no more than a later delivery, and the answer says so for the log."""
    failed = [one.record for one in result.results if one.decision.outcome is RecordOutcome.RETRY]
    delays = {record.receipt: delay_seconds(record.receives) for record in failed if record.receipt}
    if not delays:
        return None
    try:
        ports.redelivery.after(delays)
    except LeewardError as error:
        return f"failed records come back only after the queue's visibility time-out: {error}"
    return None
