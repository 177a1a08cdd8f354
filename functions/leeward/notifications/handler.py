"""Entry point of fn notifications: changes of termination records in, events on the bus out."""

import os
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.event_bus import EventBridgeBus
from leeward.adapters.aws.record_stream import RecordChange, UnreadableChange, changes_of
from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.notifications.events import SOURCE, NodeTerminationEvent, events_of_change
from leeward.telemetry import Telemetry

EVENTS_PUBLISHED = "EventsPublished"
CHANGES_UNREADABLE = "ChangesUnreadable"

telemetry = Telemetry("notifications")


@cache
def bus() -> EventBridgeBus:
    """Build the bus at the first call: importing this module reads no environment."""
    return EventBridgeBus(AwsClients(), os.environ.get("EVENT_SOURCE") or SOURCE)


def handle(event: Mapping[str, Any], _context: object) -> dict[str, int]:
    """Handle a batch of the table's stream -> `{"events": number}`. Raises if the bus did not take them: Lambda then
    delivers the batch again, and a subscriber recognizes a duplicate event by its `detail.id`.
    """
    changes, unreadable = changes_of(event)
    found: list[NodeTerminationEvent] = []
    for change in changes:
        with isolate_errors(partial(_unreadable, unreadable, change)):
            found += events_of_change(change.before, change.after, change.at)
    for one in unreadable:
        telemetry.error("a record that cannot be read makes no event", {"key": one.key, "why": one.why})
    bus().publish(found)
    for made in found:
        telemetry.info(made.type.value, {"id": made.id, "instance": made.record.instance, "why": made.reason})
    telemetry.count({EVENTS_PUBLISHED: len(found), CHANGES_UNREADABLE: len(unreadable)})
    return {"events": len(found)}


def _unreadable(found: list[UnreadableChange], change: RecordChange, error: LeewardError) -> None:
    found.append(UnreadableChange(key=change.after.instance, why=f"{type(error).__name__}: {error}"))
