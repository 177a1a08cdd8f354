"""Termination record as the whole item that the partial writes of `claims` leave in the table. Layout, no calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from leeward.adapters.aws.record_items import cause_item, offset_item, record_key
from leeward.model.codec import encode

if TYPE_CHECKING:
    from leeward.model.termination import TerminationRecord

BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)  # causes keep their order: when each joined is in no record


def whole_item(record: TerminationRecord) -> dict[str, Any]:
    """Return the whole item, without what the table alone needs. A cause of an earlier period stands in the one before
    the present.
    """
    now = {cause.id for cause in record.causes}
    joined = {cause.id: BEFORE_ALL + timedelta(seconds=number) for number, cause in enumerate(record.all_causes)}
    return {
        **encode(record),
        "pk": record_key(record.instance),
        "causes": {
            cause.id: cause_item(cause, joined[cause.id], period=record.period - (cause.id not in now))
            for cause in record.all_causes
        },
        "offsets": {surge.key: offset_item(surge, end) for surge, end in record.offsets.items()},
        "period": record.period,  # without it an item is none
    }
