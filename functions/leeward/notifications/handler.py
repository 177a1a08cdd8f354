"""Entry point of fn notifications: changes of records of terminations, upgrades and disruption runs
and of pause switches in, events on the bus out."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.event_bus import Event, EventBridgeBus
from leeward.adapters.aws.record_stream import Change, UnreadableChange, changes_of
from leeward.adapters.entry import entry_point
from leeward.adapters.telemetry import throttled
from leeward.disruption.record import DisruptionRecord
from leeward.errors import LeewardError
from leeward.isolation import isolate_errors
from leeward.model.pause import PauseRecord
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.notifications.content import Announced
from leeward.notifications.events import SOURCE, EventType, NodeTerminationEvent, events_of_change
from leeward.notifications.messages import for_webhook
from leeward.notifications.workflow_events import events_of_pauses, events_of_runs, events_of_upgrades
from leeward.policy.document import WebhookFormat
from leeward.telemetry import Telemetry, scopes_of
from leeward.upgrade.record import UpgradeRecord

EVENTS_PUBLISHED = "EventsPublished"
CHANGES_UNREADABLE = "ChangesUnreadable"
TERMINATIONS_REQUESTED = "TerminationsRequested"
NODES_INTERRUPTED = "NodesInterrupted"
NAMES = ("execution", "instance", "node", "group", "cluster")  # keys by which a line of any function is found
INTERRUPTIONS = frozenset(
    {
        CauseKind.SPOT_INTERRUPTION,
        CauseKind.REBALANCE_RECOMMENDATION,
        CauseKind.SCHEDULED_CHANGE,
        CauseKind.CAPACITY_RESERVATION,
        CauseKind.CAPACITY_BLOCK,
    }
)
EVENTS: Mapping[type, Callable[[Any, Any, datetime], Sequence[Announced]]] = {
    TerminationRecord: events_of_change,
    PauseRecord: events_of_pauses,
    UpgradeRecord: events_of_upgrades,
    DisruptionRecord: events_of_runs,
}
"""Type of a record -> the events of its change."""

telemetry = Telemetry("notifications")


@cache
def webhooks() -> dict[str, WebhookFormat]:
    """Return the formats of the clusters' webhooks, by cluster."""
    named: dict[str, str] = json.loads(os.environ.get("WEBHOOKS") or "{}")
    return {cluster: WebhookFormat(name) for cluster, name in named.items()}


@cache
def bus() -> EventBridgeBus:
    """Build the buses at the first call: importing this module reads no environment."""
    clients = AwsClients(throttled=throttled)
    return EventBridgeBus(clients, os.environ.get("EVENT_SOURCE") or SOURCE, os.environ.get("WEBHOOK_BUS", ""))


@entry_point("notifications")
def handle(event: Mapping[str, Any], _context: object) -> dict[str, int]:
    """Handle a batch of the table's stream -> `{"events": number}`. Raises if the bus did not take them: Lambda then
    delivers the batch again, and a subscriber recognizes a duplicate event by its `detail.id`.
    """
    changes, unreadable = changes_of(event)
    events: list[Announced] = []
    called: list[Event] = []
    for change in changes:
        with isolate_errors(partial(_unreadable, unreadable, change)):
            made = EVENTS[type(change.after)](change.before, change.after, change.at)
            called += [sent for sent in (for_webhook(each, webhooks()) for each in made) if sent is not None]
            events += made
    for record in unreadable:
        telemetry.error("a record that cannot be read makes no event", {"key": record.key, "why": record.why})
    bus().publish(events, called)
    for each in events:
        about = {name: each.detail().get(name) for name in NAMES}
        telemetry.info(each.type.value, {"id": each.id, "resources": list(each.resources), "why": each.reason, **about})
    telemetry.count({EVENTS_PUBLISHED: len(events), CHANGES_UNREADABLE: len(unreadable)})
    for each in events:
        if isinstance(each, NodeTerminationEvent) and each.type is EventType.DETECTED:
            _count(each)
    return {"events": len(events)}


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
    after = change.after
    match after:
        case TerminationRecord():
            key = after.instance
        case UpgradeRecord():
            key = after.group
        case _:
            key = after.cluster
    found.append(UnreadableChange(key=key, why=f"{type(error).__name__}: {error}"))
