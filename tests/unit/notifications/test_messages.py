"""Messages for Slack, Teams and PagerDuty: their published shapes, and text of clusters that must stay text."""

import json
import re
from dataclasses import replace
from unicodedata import category

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.model.termination import Outcome, Status
from leeward.notifications.events import EventType, events_of_change
from leeward.notifications.messages import FormattedEvent, for_webhook, message_of
from leeward.notifications.workflow_events import PauseEvent, PauseEventType, RunEventType, UpgradeEventType
from leeward.policy.document import WebhookFormat
from tests.fakes.builders import CLUSTER, a_pause, a_subject
from tests.unit.notifications.test_events import NOW, a_record
from tests.unit.notifications.workflows import PERSON, run_events, upgrade_events


def plain(most):
    """A text object of Slack's Block Kit that renders no formatting."""
    text = {"type": "string", "minLength": 1, "maxLength": most}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["type", "text"],
        "properties": {"type": {"const": "plain_text"}, "text": text, "emoji": {"const": False}},
    }


SLACK = {  # docs.slack.dev: incoming webhooks; Block Kit's header (150), section (text 3000, ten fields of 2000)
    "type": "object",
    "additionalProperties": False,
    "required": ["text", "blocks"],
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 40_000},
        "mrkdwn": {"const": False},
        "unfurl_links": {"const": False},
        "unfurl_media": {"const": False},
        "blocks": {
            "type": "array",
            "minItems": 1,
            "maxItems": 50,
            "items": {
                "oneOf": [
                    {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["type", "text"],
                        "properties": {"type": {"const": "header"}, "text": plain(150)},
                    },
                    {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["type"],
                        "anyOf": [{"required": ["text"]}, {"required": ["fields"]}],
                        "properties": {
                            "type": {"const": "section"},
                            "text": plain(3000),
                            "fields": {"type": "array", "minItems": 1, "maxItems": 10, "items": plain(2000)},
                        },
                    },
                ]
            },
        },
    },
}
RUN = {  # adaptivecards.io, TextRun: no Markdown, unlike TextBlock and FactSet
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "text"],
    "properties": {
        "type": {"const": "TextRun"},
        "text": {"type": "string"},
        "weight": {"enum": ["Default", "Lighter", "Bolder"]},
        "size": {"enum": ["Default", "Small", "Medium", "Large", "ExtraLarge"]},
    },
}
TEAMS = {  # learn.microsoft.com: Workflows, "Post to a channel when a webhook request is received"
    "type": "object",
    "additionalProperties": False,
    "required": ["type", "attachments"],
    "properties": {
        "type": {"const": "message"},
        "attachments": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["contentType", "content"],
                "properties": {
                    "contentType": {"const": "application/vnd.microsoft.card.adaptive"},
                    "contentUrl": {"type": "null"},
                    "content": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["type", "version", "body"],
                        "properties": {
                            "$schema": {"const": "http://adaptivecards.io/schemas/adaptive-card.json"},
                            "type": {"const": "AdaptiveCard"},
                            "version": {"const": "1.4"},
                            "body": {
                                "type": "array",
                                "minItems": 1,
                                "items": {
                                    "type": "object",
                                    "additionalProperties": False,
                                    "required": ["type", "inlines"],
                                    "properties": {
                                        "type": {"const": "RichTextBlock"},
                                        "inlines": {"type": "array", "minItems": 1, "items": RUN},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
PAGERDUTY = {  # developer.pagerduty.com: Events API v2, with the key that EventBridge's connection adds
    "type": "object",
    "additionalProperties": False,
    "required": ["routing_key", "event_action", "dedup_key"],
    "if": {"properties": {"event_action": {"const": "trigger"}}},
    "then": {"required": ["payload"]},
    "properties": {
        "routing_key": {"type": "string", "minLength": 32, "maxLength": 32},
        "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
        "dedup_key": {"type": "string", "minLength": 1, "maxLength": 255},
        "client": {"type": "string"},
        "payload": {
            "type": "object",
            "additionalProperties": False,
            "required": ["summary", "source", "severity"],
            "properties": {
                "summary": {"type": "string", "minLength": 1, "maxLength": 1024},
                "source": {"type": "string", "minLength": 1},
                "severity": {"enum": ["critical", "error", "warning", "info"]},
                "timestamp": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?Z$"},
                "component": {"type": "string"},
                "group": {"type": "string"},
                "class": {"type": "string"},
                "custom_details": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        },
    },
}
SHAPES = {WebhookFormat.SLACK: SLACK, WebhookFormat.TEAMS: TEAMS, WebhookFormat.PAGERDUTY: PAGERDUTY}
TEAMS_BYTES = 21_000  # the documented 28 KB are about 21,000 bytes of payload in practice
HOSTILE = "<!channel> <@U1> <https://evil.example|ok> *b* `c` [x](https://evil.example) <at>all</at> @here &amp; \u202e"


def as_sent(message, wanted):
    """The body of the call: EventBridge's connection adds PagerDuty's key."""
    return message | ({"routing_key": "0" * 32} if wanted is WebhookFormat.PAGERDUTY else {})


def events(text="pdb shop/web allows no disruption now", **subject):
    """One event of each type, with a text of the cluster wherever there is one."""
    old = a_record(subject=replace(a_subject(), **subject))
    started = replace(old, times={**old.times, "draining": NOW})
    blocked = replace(started, blocked_by=(f"shop/web-1: {text}",))
    closed = replace(started, status=Status.CLOSED, outcome=Outcome.RETURNED_TO_SERVICE, failure=text)
    done = replace(started, status=Status.CLOSED, outcome=Outcome.TERMINATED)
    changes = [(None, old), (old, started), (started, blocked), (started, closed), (started, done)]
    made = {event.type: event for before, after in changes for event in events_of_change(before, after, NOW)}
    assert set(made) == set(EventType)
    return made


def a_pause_event(why="release"):
    pause = replace(a_pause(), why=why)
    return PauseEvent(
        type=PauseEventType.PAUSED, id="pause-1", at=NOW, cluster=CLUSTER, pause=pause, by=pause.by, reason=why
    )


def every(text="the budget is 0", name=None):
    """One event of each type there is."""
    names = {} if name is None else {"group": name, "cluster": name}
    run_names = {} if name is None else {"groups": (name,), "cluster": name}
    workflows = (*upgrade_events(text, **names).values(), *run_events(text, **run_names).values())
    subject = {} if name is None else {"node": name, "group": name, "cluster": name, "zone": name}
    return (*events(text, **subject).values(), a_pause_event(text), *workflows)


@pytest.mark.parametrize("wanted", list(SHAPES))
def test_every_event_has_the_receivers_shape_or_none(wanted):
    sent = [message_of(event, wanted) for event in every()]
    for message in filter(None, sent):
        jsonschema.validate(as_sent(message, wanted), SHAPES[wanted])
    assert all(sent) is (wanted is not WebhookFormat.PAGERDUTY)


def test_a_message_says_what_happened_to_which_node_and_why():
    blocked = events()[EventType.BLOCKED]
    subject = blocked.record.subject
    said = json.dumps(message_of(blocked, WebhookFormat.SLACK))
    for word in (subject.node, subject.cluster, subject.group, subject.instance, "shop/web-1", "no disruption now"):
        assert word in said, word
        assert word in json.dumps(message_of(blocked, WebhookFormat.TEAMS)), word


def test_an_incident_of_an_instance_opens_when_its_drain_is_blocked_and_is_resolved_at_its_end():
    made = {kind: message_of(event, WebhookFormat.PAGERDUTY) for kind, event in events().items()}
    assert made[EventType.DETECTED] is made[EventType.STARTED] is None
    assert (made[EventType.BLOCKED]["event_action"], made[EventType.BLOCKED]["payload"]["severity"]) == (
        "trigger",
        "warning",
    )
    assert made[EventType.FAILED]["payload"]["severity"] == "error"
    assert made[EventType.FINISHED]["event_action"] == "resolve"
    assert len({made[kind]["dedup_key"] for kind in (EventType.BLOCKED, EventType.FAILED, EventType.FINISHED)}) == 1
    assert message_of(a_pause_event(), WebhookFormat.PAGERDUTY) is None


def test_an_incident_of_a_group_opens_when_its_upgrade_fails_or_an_alarm_holds_it_and_for_no_other_hold():
    made = upgrade_events()
    sent = {kind: message_of(event, WebhookFormat.PAGERDUTY) for kind, event in made.items()}
    assert sent[UpgradeEventType.STARTED] is sent[UpgradeEventType.HELD] is sent[UpgradeEventType.ROLLING_BACK] is None
    failed = sent[UpgradeEventType.FAILED]
    assert (failed["event_action"], failed["payload"]["severity"]) == ("trigger", "error")
    held = made[UpgradeEventType.HELD]
    alarmed = replace(held, record=replace(held.record, hold=replace(held.record.hold, kind="alarm")))
    alarm = message_of(alarmed, WebhookFormat.PAGERDUTY)
    assert (alarm["event_action"], alarm["payload"]["severity"]) == ("trigger", "warning")
    ends = [sent[kind] for kind in (UpgradeEventType.RESUMED, UpgradeEventType.FINISHED, UpgradeEventType.ROLLED_BACK)]
    assert {end["event_action"] for end in ends} == {"resolve"}
    assert len({one["dedup_key"] for one in (failed, alarm, *ends)}) == 1
    assert [message_of(event, WebhookFormat.PAGERDUTY) for event in run_events().values()] == [None] * 3


def test_a_message_about_an_upgrade_says_who_how_far_why_and_what_next():
    held = upgrade_events()[UpgradeEventType.HELD]
    for wanted in (WebhookFormat.SLACK, WebhookFormat.TEAMS):
        said = json.dumps(message_of(held, wanted))
        for word in ("group web", "blue", PERSON, "1 replaced", "pods did not leave", "leeward upgrade abort web"):
            assert word in said, word


def test_a_message_about_a_run_says_what_it_brought():
    said = json.dumps(message_of(run_events()[RunEventType.FINISHED], WebhookFormat.SLACK))
    for word in ("run 4 in blue", "consolidation", "2 planned, 2 gone, 1 launched", "$0.152 an hour", "its policy"):
        assert word in said, word


def texts(message):
    """All texts of a message, without keys."""
    if isinstance(message, dict):
        return [text for value in message.values() for text in texts(value)]
    if isinstance(message, list):
        return [text for value in message for text in texts(value)]
    return [message] if isinstance(message, str) else []


def test_slack_gets_no_mention_no_link_and_no_formatting_from_a_cluster():
    for event in every(HOSTILE, HOSTILE):
        message = message_of(event, WebhookFormat.SLACK)
        assert [text for text in texts(message) if "<" in text or ">" in text] == []
        assert [text for text in texts(message) if re.search(r"&(?!amp;|lt;|gt;)", text)] == []
        assert message["mrkdwn"] is False
        assert '"mrkdwn"' not in json.dumps(message["blocks"])
        jsonschema.validate(message, SLACK)
    assert "&lt;!channel&gt;" in json.dumps(message_of(a_pause_event(HOSTILE), WebhookFormat.SLACK))


def test_teams_renders_no_markdown_and_mentions_no_one():
    for event in every(HOSTILE, HOSTILE):
        message = message_of(event, WebhookFormat.TEAMS)
        jsonschema.validate(message, TEAMS)  # TextRuns alone, and no `msteams.entities`, without which <at> is a text


@pytest.mark.parametrize("wanted", list(SHAPES))
def test_directions_of_text_and_line_breaks_do_not_get_through(wanted):
    for event in every("a\u202eb\nc", "n\u2028m"):
        for text in texts(message_of(event, wanted)):
            assert not re.search("[\u202e\u2028\n]", text)


@pytest.mark.parametrize("wanted", list(SHAPES))
@pytest.mark.parametrize("name", ["\t", "\n\r\x0c", "\u3000", "\u00ad", "\u200b\u2060", "\x1f\x1c"])
def test_no_field_is_empty_whatever_a_cluster_calls_its_things(name, wanted):
    for event in (*every(name, name), *events(name, instance_type=name).values()):
        message = message_of(event, wanted)
        if message is not None:
            jsonschema.validate(as_sent(message, wanted), SHAPES[wanted])
            shown = texts(message.get("payload", message))
            assert [text for text in shown if all(category(letter)[0] in "CZ" for letter in text)] == []


@given(
    text=st.text(min_size=1, max_size=6000),
    name=st.text(max_size=300),
    wanted=st.sampled_from(sorted(SHAPES)),
    kind=st.integers(0, len(every()) - 1),
)
def test_no_text_of_a_cluster_breaks_a_shape_or_a_limit(text, name, wanted, kind):
    message = message_of(every(text, name)[kind], wanted)
    if message is not None:
        jsonschema.validate(as_sent(message, wanted), SHAPES[wanted])
        assert len(json.dumps(message).encode()) <= TEAMS_BYTES


def test_a_webhook_gets_the_detail_with_the_message_and_its_format():
    made = events()[EventType.BLOCKED]
    sent = for_webhook(made, {CLUSTER: WebhookFormat.SLACK})
    assert isinstance(sent, FormattedEvent)
    assert (sent.type, sent.id, sent.at, sent.resources) == (made.type, made.id, made.at, made.resources)
    assert sent.detail() == {**made.detail(), "format": "slack", "message": message_of(made, WebhookFormat.SLACK)}
    assert for_webhook(made, {CLUSTER: WebhookFormat.JSON}) is made


def test_a_cluster_without_a_webhook_and_a_receiver_without_a_use_for_the_event_get_none():
    assert for_webhook(events()[EventType.BLOCKED], {"other": WebhookFormat.SLACK}) is None
    assert for_webhook(events()[EventType.DETECTED], {CLUSTER: WebhookFormat.PAGERDUTY}) is None
