"""Log lines and metrics of the interruption package, each name declared once (docs/reference/metrics.md lists them)."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from leeward.interruption.batch import BatchResult, Record, RecordResult
from leeward.interruption.decision import Decision, RecordOutcome
from leeward.model.times import format_instant
from leeward.model.well_known import STATE_CHANGES
from leeward.telemetry import Telemetry

MESSAGES = "InterruptionMessages"
DEAD_LETTERED = "InterruptionMessagesDeadLettered"
RETRIED = "InterruptionMessagesRetried"
NODES_TAINTED = "NodesTainted"
OLDEST_INTERRUPTION = "OldestInterruptionRetried"
OLDEST_STATE_CHANGE = "OldestStateChangeRetried"

LOG_KEYS = ("messageId", "eventId", "kind", "instances", "action", "outcome", "hook", "deadline", "warnings")
NAMES = ("instance", "node", "group", "cluster")  # in the line of a record about one instance

telemetry = Telemetry("interruption")


def handled(result: BatchResult, now: datetime) -> None:
    """Log one line per record with its outcome, and count the batch.

    The age of the oldest failed record stands beside the counts: SQS leaves a message that was received three times out
    of ApproximateAgeOfOldestMessage, so its own metric does not show one whose handling keeps failing.
    """
    for record in result.results:
        _log(record)
    outcomes = [record.decision.outcome for record in result.results]
    telemetry.count(
        {
            MESSAGES: len(outcomes),
            DEAD_LETTERED: outcomes.count(RecordOutcome.MALFORMED),
            RETRIED: outcomes.count(RecordOutcome.RETRY),
            NODES_TAINTED: len(result.tainted),
        }
    )
    failed = [each.record for each in result.results if each.decision.outcome is RecordOutcome.RETRY]
    telemetry.count(_oldest(failed, now), unit="Seconds")


def _oldest(failed: Iterable[Record], now: datetime) -> dict[str, float]:
    """Return the age of the oldest record of each queue that has one."""
    ages: dict[str, float] = {}
    for record in failed:
        name = OLDEST_STATE_CHANGE if record.queue.endswith(f"-{STATE_CHANGES}") else OLDEST_INTERRUPTION
        ages[name] = max(ages.get(name, 0), (now - record.received).total_seconds())
    return ages


def _log(result: RecordResult) -> None:
    done = result.decision.outcome is RecordOutcome.DONE and not result.warnings
    write = telemetry.info if done else telemetry.warning
    write(result.decision.reason, log_fields(result))


def log_fields(result: RecordResult) -> dict[str, Any]:
    """Return the keys of a record's log line, in the order of LOG_KEYS; the logger leaves out those that are None."""
    decision, message = result.decision, result.message
    hook = decision.hook
    values = (
        result.record.id,
        message.event_id if message else None,
        decision.kind.value if decision.kind else None,
        list(message.instances) if message else [],
        decision.action.value,
        decision.outcome.value,
        {"name": hook.action.hook, "result": hook.result.value, "atOnce": hook.at_once} if hook else None,
        format_instant(decision.deadline) if decision.deadline else None,
        list(result.warnings),
    )
    return dict(zip(LOG_KEYS, values, strict=True)) | _names(decision)


def _names(decision: Decision) -> dict[str, str | None]:
    """Return the keys by which a line of any function is found; for several instances `instances` has them."""
    if len(decision.nodes) != 1:
        return {}
    (node,) = decision.nodes
    subject = node.subject
    named = (subject.node, subject.group) if subject else (None, None)
    return dict(zip(NAMES, (node.instance, *named, node.cluster), strict=True))
