"""Entry point of fn notifications: changes of termination records and pause switches in, events on the bus out."""

import os
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.event_bus import Event, EventBridgeBus
from leeward.adapters.aws.record_stream import Change, PauseChange, UnreadableChange, changes_of
from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.notifications.events import SOURCE, events_of_change
from leeward.notifications.pause_events import events_of_pauses
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
    found: list[Event] = []
    for change in changes:
        with isolate_errors(partial(_unreadable, unreadable, change)):
            found += _events(change)
    for one in unreadable:
        telemetry.error("a record that cannot be read makes no event", {"key": one.key, "why": one.why})
    bus().publish(found)
    for made in found:
        telemetry.info(made.type.value, {"id": made.id, "resources": list(made.resources), "why": made.reason})
    telemetry.count({EVENTS_PUBLISHED: len(found), CHANGES_UNREADABLE: len(unreadable)})
    return {"events": len(found)}


def _events(change: Change) -> Sequence[Event]:
    if isinstance(change, PauseChange):
        return events_of_pauses(change.before, change.after, change.at)
    return events_of_change(change.before, change.after, change.at)


def _unreadable(found: list[UnreadableChange], change: Change, error: LeewardError) -> None:
    key = change.after.cluster if isinstance(change, PauseChange) else change.after.instance
    found.append(UnreadableChange(key=key, why=f"{type(error).__name__}: {error}"))
