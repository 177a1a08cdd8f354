"""Messages for Slack, Microsoft Teams and PagerDuty, made of an event.

Decides what a message says and in which shape; EventBridge sends it to the cluster's webhook in place of the event's
detail. Names, reasons and blockers come from clusters: a pod or a budget may be called anything. So they are put only
where the receiver renders plain text, Slack's control characters are escaped, and every text is cut to the receiver's
limits.

Shapes: Slack, "Sending messages using incoming webhooks" and "Block Kit" (docs.slack.dev); Teams, "Create incoming
webhooks with Workflows" and the Adaptive Cards schema 1.4 (learn.microsoft.com, adaptivecards.io); PagerDuty, "Events
API v2" (developer.pagerduty.com)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never
from unicodedata import category

from leeward.model.blocked import BlockedLine
from leeward.model.deadlines import known_deadline
from leeward.model.times import format_instant
from leeward.model.visible import visible
from leeward.notifications.events import EventType, NodeTerminationEvent
from leeward.notifications.pause_events import PauseEvent, PauseEventType
from leeward.policy.document import WebhookFormat

LONGEST_TITLE = 150  # characters of a header in Slack, the shortest of the three
LONGEST_TEXT = 1000  # a section in Slack takes 3000, a card in Teams 28 KB with everything
LONGEST_FACT = 300
MOST_BLOCKERS = 5  # that a message names
LONGEST_SUMMARY = 1024  # PagerDuty
LONGEST_KEY = 255  # PagerDuty's dedup_key
NOTHING_VISIBLE = "(no visible text)"
CARD = "application/vnd.microsoft.card.adaptive"
SEVERITIES = {EventType.BLOCKED: "warning", EventType.FAILED: "error"}  # events that open an incident in PagerDuty

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """Content of a message. `about`: the node, the group or the cluster; `key`: the same for all events of one
    instance.
    """

    title: str
    text: str
    facts: tuple[Fact, ...]
    about: str
    cluster: str
    group: str
    key: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedEvent:
    """Event with its message beside the detail."""

    event: NodeTerminationEvent | PauseEvent
    format: WebhookFormat
    message: dict[str, Any]

    @property
    def type(self) -> EventType | PauseEventType:
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


def for_webhook(
    event: NodeTerminationEvent | PauseEvent, webhooks: Mapping[str, WebhookFormat]
) -> NodeTerminationEvent | PauseEvent | FormattedEvent | None:
    """Return what the webhook of the event's cluster gets: the event, or one with its message where the webhook has a
    format; None where there is no webhook, or its receiver has no use for the event. `webhooks`: by cluster.
    """
    cluster = event.cluster if isinstance(event, PauseEvent) else event.record.subject.cluster
    wanted = webhooks.get(cluster)
    if wanted is None or wanted is WebhookFormat.JSON:
        return event if wanted else None
    message = message_of(event, wanted)
    return None if message is None else FormattedEvent(event=event, format=wanted, message=message)


def message_of(event: NodeTerminationEvent | PauseEvent, wanted: WebhookFormat) -> dict[str, Any] | None:
    """Return the body of the webhook's call; None where the format has none for the event."""
    content = _pause(event) if isinstance(event, PauseEvent) else _termination(event)
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


def _termination(event: NodeTerminationEvent) -> _Content:
    subject = event.record.subject
    about = _line(subject.node or subject.instance, LONGEST_FACT)
    cluster = _line(subject.cluster, LONGEST_FACT)
    return _Content(
        title=_line(f"{event.type.value}: {about} in {cluster}", LONGEST_TITLE),
        text=_line(event.reason or event.type.value, LONGEST_TEXT),
        facts=tuple((name, _line(value, LONGEST_FACT)) for name, value in _facts(event) if value),
        about=about,
        cluster=cluster,
        group=_line(subject.group, LONGEST_FACT) if subject.group else "",
        key=f"{subject.cluster}/{subject.instance}",
        id=event.id,
    )


def _facts(event: NodeTerminationEvent) -> Iterator[Fact]:
    record, subject = event.record, event.record.subject
    yield "Cluster", subject.cluster
    yield "Group", subject.group or ""
    yield "Instance", f"{subject.instance} ({subject.instance_type}, {subject.zone})"
    yield "Causes", ", ".join(dict.fromkeys(cause.kind.value for cause in event.causes))
    deadline = known_deadline(record, event.at)
    yield "Deadline", format_instant(deadline) if deadline else ""
    pods = [BlockedLine.read(line).pod for line in record.blocked_by]
    named = [pod for pod in pods if pod is not None]
    more = f" and {len(named) - MOST_BLOCKERS} more" if len(named) > MOST_BLOCKERS else ""
    yield "Blocking pods", f"{', '.join(named[:MOST_BLOCKERS])}{more}"
    yield "Pods evicted", str(record.pods_evicted) if record.pods_evicted else ""


def _pause(event: PauseEvent) -> _Content:
    pause = event.pause
    cluster, group = _line(event.cluster, LONGEST_FACT), _line(pause.group, LONGEST_FACT) if pause.group else ""
    about = f"group {group}" if group else f"cluster {cluster}"
    facts = (("Cluster", event.cluster), ("Group", pause.group), ("By", event.by), ("End", pause.end))
    return _Content(
        title=_line(f"{event.type.value}: {about}", LONGEST_TITLE),
        text=_line(event.reason or event.type.value, LONGEST_TEXT),
        facts=tuple((name, _line(value, LONGEST_FACT)) for name, value in facts if value),
        about=about,
        cluster=cluster,
        group=group,
        key=f"{event.cluster}/pause/{pause.group}",
        id=event.id,
    )


def _line(text: str, most: int) -> str:
    """Return the text on one line, without characters that are not seen, cut to `most`. A text of blanks and characters
    without a shape gets a placeholder: the receivers refuse a message whose fields are empty.
    """
    line = " ".join(visible(text).split())
    if all(category(letter)[0] in "CZ" for letter in line):
        return NOTHING_VISIBLE
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _slack(content: _Content) -> dict[str, Any]:
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


def _teams(content: _Content) -> dict[str, Any]:
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


def _pagerduty(content: _Content, event: NodeTerminationEvent | PauseEvent) -> dict[str, Any] | None:
    """Return an event of the Events API v2 without its `routing_key`, which EventBridge's connection adds. An instance
    has one incident: a drain that is blocked or has failed opens it, its end resolves it. Nothing else is one.
    """
    key = f"leeward/{content.key}"[:LONGEST_KEY]
    if event.type is EventType.FINISHED:
        return {"event_action": "resolve", "dedup_key": key}
    severity = SEVERITIES.get(event.type) if isinstance(event, NodeTerminationEvent) else None
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
