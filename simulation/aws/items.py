"""Termination records as the items that the product's partial writes leave in the table."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from leeward.adapters.aws.record_items import (
    cause_item,
    new_record,
    offset_item,
    plan_item,
    replacement_item,
    times_item,
)
from leeward.adapters.aws.table import from_wire, to_wire
from leeward.model.termination import TerminationRecord


def termination_item(record: TerminationRecord) -> dict[str, Any]:
    """Return the whole item. A cause of an earlier period stands in the one before the present."""
    causes, claimed = record.all_causes, record.times["claimed"]
    item = new_record(record.subject, causes[0], claimed, deployment=record.deployment)
    joined = {cause.id: claimed + timedelta(seconds=number) for number, cause in enumerate(causes)}
    now = {cause.id for cause in record.causes}
    item |= {
        "status": record.status.value,
        "attempt": record.attempt,
        "version": record.version,
        "period": record.period,
        "surgePeriod": record.surge_period,
        "namesTaken": record.names_taken,
        "causes": {
            cause.id: cause_item(cause, joined[cause.id], period=record.period - (cause.id not in now))
            for cause in causes
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


def delivered(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item as DynamoDB delivers it."""
    return {name: from_wire(to_wire(value)) for name, value in item.items()}
