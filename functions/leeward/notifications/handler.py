"""Entry point of fn notifications: changes of termination records and pause switches in, events on the bus out."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.event_bus import Event, EventBridgeBus
from leeward.adapters.aws.record_stream import Change, PauseChange, UnreadableChange, changes_of
from leeward.adapters.telemetry import throttled
from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.model.termination import CauseKind
from leeward.notifications.events import SOURCE, EventType, NodeTerminationEvent, events_of_change
from leeward.notifications.messages import FormattedEvent, formatted
from leeward.notifications.pause_events import PauseEvent, events_of_pauses
from leeward.policy.document import WebhookFormat
from leeward.telemetry import Telemetry, scopes_of

EVENTS_PUBLISHED = "EventsPublished"
CHANGES_UNREADABLE = "ChangesUnreadable"
TERMINATIONS_REQUESTED = "TerminationsRequested"
NODES_INTERRUPTED = "NodesInterrupted"
INTERRUPTIONS = frozenset(
    {
        CauseKind.SPOT_INTERRUPTION,
        CauseKind.REBALANCE_RECOMMENDATION,
        CauseKind.SCHEDULED_CHANGE,
        CauseKind.CAPACITY_RESERVATION,
        CauseKind.CAPACITY_BLOCK,
    }
)

telemetry = Telemetry("notifications")


@cache
def formats() -> dict[str, WebhookFormat]:
    """Return the formats of the clusters' webhooks, by cluster; those that take the detail as it is are not named."""
    named: dict[str, str] = json.loads(os.environ.get("WEBHOOK_FORMATS") or "{}")
    return {cluster: WebhookFormat(name) for cluster, name in named.items()}


@cache
def bus() -> EventBridgeBus:
    """Build the bus at the first call: importing this module reads no environment."""
    return EventBridgeBus(AwsClients(throttled=throttled), os.environ.get("EVENT_SOURCE") or SOURCE)


def handle(event: Mapping[str, Any], _context: object) -> dict[str, int]:
    """Handle a batch of the table's stream -> `{"events": number}`. Raises if the bus did not take them: Lambda then
    delivers the batch again, and a subscriber recognizes a duplicate event by its `detail.id`.
    """
    changes, unreadable = changes_of(event)
    found: list[Event] = []
    for change in changes:
        with isolate_errors(partial(_unreadable, unreadable, change)):
            found += [formatted(made, formats()) for made in _events(change)]
    for one in unreadable:
        telemetry.error("a record that cannot be read makes no event", {"key": one.key, "why": one.why})
    bus().publish(found)
    for made in found:
        telemetry.info(made.type.value, {"id": made.id, "resources": list(made.resources), "why": made.reason})
    telemetry.count({EVENTS_PUBLISHED: len(found), CHANGES_UNREADABLE: len(unreadable)})
    for made in found:
        event_itself = made.event if isinstance(made, FormattedEvent) else made
        if isinstance(event_itself, NodeTerminationEvent) and made.type is EventType.DETECTED:
            _count(event_itself)
    return {"events": len(found)}


def _events(change: Change) -> Sequence[NodeTerminationEvent | PauseEvent]:
    if isinstance(change, PauseChange):
        return events_of_pauses(change.before, change.after, change.at)
    return events_of_change(change.before, change.after, change.at)


def _count(detected: NodeTerminationEvent) -> None:
    """Count the termination that a cause requests; those by AWS are interruptions. A node counts once, by its first
    cause: the group's lifecycle action, a state change and a second warning join the termination that is under way.
    """
    subject, kind = detected.record.subject, detected.causes[0].kind
    if detected.causes[0] != detected.record.causes[0]:
        return
    cluster, group = subject.cluster, subject.group or ""
    by_cause = {"cluster": cluster, "cause": kind.value}
    telemetry.count({TERMINATIONS_REQUESTED: 1}, *scopes_of(cluster, group), by_cause)
    if kind in INTERRUPTIONS:
        telemetry.count({NODES_INTERRUPTED: 1}, *scopes_of(cluster, group))


def _unreadable(found: list[UnreadableChange], change: Change, error: LeewardError) -> None:
    key = change.after.cluster if isinstance(change, PauseChange) else change.after.instance
    found.append(UnreadableChange(key=key, why=f"{type(error).__name__}: {error}"))
