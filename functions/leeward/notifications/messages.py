"""Messages for Slack, Microsoft Teams and PagerDuty, made of an event.

Decides the shape of a message (`content` decides what it says); EventBridge sends it to the cluster's webhook in place
of the event's detail. Names, reasons and blockers come from clusters: a pod or a budget may be called anything. So they
are put only where the receiver renders plain text, Slack's control characters are escaped, and every text is cut to the
receiver's limits.

Shapes: Slack, "Sending messages using incoming webhooks" and "Block Kit" (docs.slack.dev); Teams, "Create incoming
webhooks with Workflows" and the Adaptive Cards schema 1.4 (learn.microsoft.com, adaptivecards.io); PagerDuty, "Events
API v2" (developer.pagerduty.com)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from leeward.model.times import format_instant
from leeward.model.visible import visible
from leeward.notifications.content import LONGEST_TITLE, Announced, Content, cluster_of, content_of
from leeward.notifications.events import EventType
from leeward.notifications.workflow_events import UpgradeEvent, UpgradeEventType
from leeward.policy.document import WebhookFormat

LONGEST_SUMMARY = 1024  # PagerDuty
LONGEST_KEY = 255  # PagerDuty's dedup_key
CARD = "application/vnd.microsoft.card.adaptive"
ALARM = "alarm"  # kind of a hold, a word of `upgrade.control.Hold`
SEVERITIES: Mapping[StrEnum, str] = {
    EventType.BLOCKED: "warning",
    EventType.FAILED: "error",
    UpgradeEventType.FAILED: "error",
}  # events that open an incident in PagerDuty
RESOLVING = frozenset(
    {EventType.FINISHED, UpgradeEventType.RESUMED, UpgradeEventType.FINISHED, UpgradeEventType.ROLLED_BACK}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedEvent:
    """Event with its message beside the detail."""

    event: Announced
    format: WebhookFormat
    message: dict[str, Any]

    @property
    def type(self) -> StrEnum:
        """Type of the event."""
        return self.event.type

    @property
    def id(self) -> str:
        """Id of the event."""
        return self.event.id

    @property
    def at(self) -> datetime:
        """Moment of the change."""
        return self.event.at

    @property
    def reason(self) -> str:
        """Reason of the event."""
        return self.event.reason

    @property
    def resources(self) -> tuple[str, ...]:
        """Resources of the event."""
        return self.event.resources

    def detail(self) -> dict[str, Any]:
        """Return the event's detail with `format` and `message`."""
        return {**self.event.detail(), "format": self.format.value, "message": self.message}


def for_webhook(event: Announced, webhooks: Mapping[str, WebhookFormat]) -> Announced | FormattedEvent | None:
    """Return what the webhook of the event's cluster gets: the event, or one with its message where the webhook has a
    format; None where there is no webhook, or its receiver has no use for the event. `webhooks`: by cluster.
    """
    wanted = webhooks.get(cluster_of(event))
    if wanted is None or wanted is WebhookFormat.JSON:
        return event if wanted else None
    message = message_of(event, wanted)
    return None if message is None else FormattedEvent(event=event, format=wanted, message=message)


def message_of(event: Announced, wanted: WebhookFormat) -> dict[str, Any] | None:
    """Return the body of the webhook's call; None where the format has none for the event."""
    content = content_of(event)
    match wanted:
        case WebhookFormat.JSON:
            return None
        case WebhookFormat.SLACK:
            return _slack(content)
        case WebhookFormat.TEAMS:
            return _teams(content)
        case WebhookFormat.PAGERDUTY:
            return _pagerduty(content, event)
        case never:
            assert_never(never)


def _slack(content: Content) -> dict[str, Any]:
    """Return an incoming webhook's body. `plain_text` has no mentions, links or formatting; `text` is what a
    notification on a phone shows, and `mrkdwn` false leaves it as it is.
    """
    facts = [_plain(f"{name}: {value}", 2000) for name, value in content.facts[:10]]
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(content.title, LONGEST_TITLE)},
        {"type": "section", "text": _plain(content.text, 3000)},
    ]
    return {
        "text": f"{_escaped(content.title)}: {_escaped(content.text)}",
        "mrkdwn": False,
        "unfurl_links": False,
        "unfurl_media": False,
        "blocks": [*blocks, *([{"type": "section", "fields": facts}] if facts else [])],
    }


def _plain(text: str, most: int) -> dict[str, Any]:
    return {"type": "plain_text", "text": _escaped(text, most), "emoji": False}


def _escaped(text: str, most: int | None = None) -> str:
    """Return the text with Slack's three control characters escaped, which makes `<!channel>` a word; cut to `most`
    characters without leaving a half of an escape.
    """
    escaped = [{"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(letter, letter) for letter in text]
    while most is not None and sum(map(len, escaped)) > most:
        escaped = [*escaped[:-2], "…"]
    return "".join(escaped)


def _teams(content: Content) -> dict[str, Any]:
    """Return the body for a workflow that posts a card. A TextBlock and a FactSet render Markdown, a TextRun does
    not.
    """
    title = {"type": "TextRun", "text": content.title, "weight": "Bolder", "size": "Medium"}
    rows = [_runs(title), _runs({"type": "TextRun", "text": content.text})]
    for name, value in content.facts:
        label = {"type": "TextRun", "text": f"{name}: ", "weight": "Bolder"}
        rows.append(_runs(label, {"type": "TextRun", "text": value}))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": rows,
    }
    return {"type": "message", "attachments": [{"contentType": CARD, "contentUrl": None, "content": card}]}


def _runs(*inlines: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": list(inlines)}


def _pagerduty(content: Content, event: Announced) -> dict[str, Any] | None:
    """Return an event of the Events API v2 without its `routing_key`, which EventBridge's connection adds. An instance
    has one incident: a drain that is blocked or has failed opens it, its end resolves it. So has a group: an upgrade
    that an alarm holds or that has failed opens it, and it is resolved once the upgrade continues or ends well. Nothing
    else is one: windows, canaries, pauses and dropped runs are as the policy wants them.
    """
    key = visible(f"leeward/{content.key}")[:LONGEST_KEY]
    if event.type in RESOLVING:
        return {"event_action": "resolve", "dedup_key": key}
    severity = _severity(event)
    if severity is None:
        return None
    return {
        "event_action": "trigger",
        "dedup_key": key,
        "client": "Leeward",
        "payload": {
            "summary": f"{content.title}: {content.text}"[:LONGEST_SUMMARY],
            "source": content.about,
            "severity": severity,
            "timestamp": format_instant(event.at),
            "component": content.group or content.about,
            "group": content.cluster,
            "class": event.type.value,
            "custom_details": {**dict(content.facts), "id": content.id},
        },
    }


def _severity(event: Announced) -> str | None:
    """Return the severity of the incident that the event opens; None where it opens none."""
    if isinstance(event, UpgradeEvent) and event.type is UpgradeEventType.HELD:
        hold = event.record.hold
        return "warning" if hold is not None and hold.kind == ALARM else None
    return SEVERITIES.get(event.type)
