"""Leeward's own events: on the account's default bus for every listener, and on the bus of the webhooks."""

import json
from collections.abc import Sequence
from typing import Any

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.adapters.telemetry import aws
from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.notifications.content import Announced
from leeward.notifications.events import SOURCE
from leeward.notifications.messages import FormattedEvent

Event = Announced | FormattedEvent
AT_ONCE = 10  # entries that PutEvents takes
REFUSED_FOR_GOOD = frozenset({"NotAuthorizedForSourceException", "AccessDeniedException"})


class EventBridgeBus:
    """Buses that take events by PutEvents, as `source`. `webhooks`: the bus that the webhooks' rules read, if any."""

    def __init__(self, clients: AwsClients, source: str = SOURCE, webhooks: str = "") -> None:
        self._clients = clients
        self._source = source
        self._webhooks = webhooks

    def publish(self, events: Sequence[Event], for_webhooks: Sequence[Event] = ()) -> None:
        """Put all events on the default bus, and those for webhooks on the webhooks' bus. A repeat after a failure puts
        those that were taken a second time, under the same `detail.id`. Where the webhooks' bus refuses for good, a
        line says so: listeners of the default bus would get each event again and again.

        Raises AwsUnavailableError where some were not taken, AccessDeniedError where none of the default bus ever will
        be.
        """
        self._put_all([_entry(event, self._source) for event in events])
        try:
            self._put_all([{**_entry(event, self._source), "EventBusName": self._webhooks} for event in for_webhooks])
        except AccessDeniedError as error:
            aws.error(f"webhooks get no events: {error}", {"events": len(for_webhooks)})

    def _put_all(self, entries: list[dict[str, Any]]) -> None:
        for first in range(0, len(entries), AT_ONCE):
            self._put(entries[first : first + AT_ONCE])

    def _put(self, entries: list[dict[str, Any]]) -> None:
        with aws_call("events:PutEvents", "Leeward's events"):
            answer = self._clients.get("events").put_events(Entries=entries)
        refused = [entry for entry in answer.get("Entries", ()) if entry.get("ErrorCode")]
        if not refused:
            return
        words = f"events:PutEvents: {len(refused)} of {len(entries)} not taken: {refused[0]['ErrorCode']}"
        if any(entry["ErrorCode"] in REFUSED_FOR_GOOD for entry in refused):
            raise AccessDeniedError(words)
        raise AwsUnavailableError(words)


def _entry(event: Event, source: str) -> dict[str, Any]:
    return {
        "Source": source,
        "DetailType": event.type.value,
        "Time": event.at,
        "Detail": json.dumps(event.detail(), separators=(",", ":")),
        "Resources": list(event.resources),
    }
