"""Termination record as the whole item that the partial writes of `claims` leave in the table. Layout, no calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from leeward.adapters.aws.record_items import (
    cause_item,
    offset_item,
    plan_item,
    record_key,
    replacement_item,
    subject_item,
    times_item,
)

if TYPE_CHECKING:
    from leeward.model.termination import TerminationRecord

BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)  # causes keep their order: when each joined is in no record


def whole_item(record: TerminationRecord) -> dict[str, Any]:
    """Return the whole item, without what the table alone needs. A cause of an earlier period stands in the one before
    the present.
    """
    now = {cause.id for cause in record.causes}
    joined = {cause.id: BEFORE_ALL + timedelta(seconds=number) for number, cause in enumerate(record.all_causes)}
    item = {
        "pk": record_key(record.instance),
        "deployment": record.deployment,
        "subject": subject_item(record.subject),
        "status": record.status.value,
        "attempt": record.attempt,
        "version": record.version,
        "period": record.period,
        "surgePeriod": record.surge_period,
        "namesTaken": record.names_taken,
        "causes": {
            cause.id: cause_item(cause, joined[cause.id], period=record.period - (cause.id not in now))
            for cause in record.all_causes
        },
        "times": times_item(record.times),
        "heartbeats": times_item(record.heartbeats),
        "offsets": {surge.key: offset_item(surge, end) for surge, end in record.offsets.items()},
        "surges": dict(record.surges),
        "reboots": times_item(record.reboots),
        "blockedBy": list(record.blocked_by),
        "evicted": record.pods_evicted,
        "failure": record.failure,
        "boot": record.boot,
    }
    absent = {
        "replacement": replacement_item(record.replacement) if record.replacement else None,
        "plan": plan_item(record.plan) if record.plan else None,
        "token": record.token,
        "outcome": record.outcome.value if record.outcome else None,
        "seen": record.seen.to_json() if record.seen else None,
    }
    return item | {name: value for name, value in absent.items() if value is not None}
