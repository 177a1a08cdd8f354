"""Content of a message, made of an event: title, text, facts, and what it is about.

Decides what a message says; `messages` puts it into the shape of a receiver. Every text is one line of visible
characters here, cut to the receivers' limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never
from unicodedata import category

from leeward.model.blocked import BlockedLine
from leeward.model.termination import known_deadline
from leeward.model.times import format_instant
from leeward.model.visible import visible
from leeward.notifications.events import NodeTerminationEvent
from leeward.notifications.workflow_events import PauseEvent, RunEvent, UpgradeEvent, dollars_of, target_of

LONGEST_TITLE = 150  # characters of a header in Slack, the shortest of the three
LONGEST_TEXT = 1000  # a section in Slack takes 3000, a card in Teams 28 KB with everything
LONGEST_FACT = 300
MOST_BLOCKERS = 5  # that a message names
NOTHING_VISIBLE = "(no visible text)"

Fact = tuple[str, str]
Announced = NodeTerminationEvent | PauseEvent | UpgradeEvent | RunEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of a message."""

    title: str
    text: str
    facts: tuple[Fact, ...]
    about: str  # the node, the group or the cluster
    cluster: str
    group: str
    key: str  # the same for all events of one instance, upgrade or run
    id: str


def content_of(event: Announced) -> Content:
    """Return the content of the event's message."""
    match event:
        case NodeTerminationEvent():
            return _termination(event)
        case PauseEvent():
            return _pause(event)
        case UpgradeEvent():
            return _upgrade(event)
        case RunEvent():
            return _run(event)
        case never:
            assert_never(never)


def cluster_of(event: Announced) -> str:
    """Return the cluster of the event."""
    return event.record.subject.cluster if isinstance(event, NodeTerminationEvent) else event.cluster


def _termination(event: NodeTerminationEvent) -> Content:
    subject = event.record.subject
    about = _line(subject.node or subject.instance, LONGEST_FACT)
    cluster = _line(subject.cluster, LONGEST_FACT)
    return Content(
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


def _pause(event: PauseEvent) -> Content:
    pause = event.pause
    cluster, group = _line(event.cluster, LONGEST_FACT), _line(pause.group, LONGEST_FACT) if pause.group else ""
    about = f"group {group}" if group else f"cluster {cluster}"
    facts = (("Cluster", event.cluster), ("Group", pause.group), ("By", event.by), ("End", pause.end))
    return Content(
        title=_line(f"{event.type.value}: {about}", LONGEST_TITLE),
        text=_line(event.reason or event.type.value, LONGEST_TEXT),
        facts=tuple((name, _line(value, LONGEST_FACT)) for name, value in facts if value),
        about=about,
        cluster=cluster,
        group=group,
        key=f"{event.cluster}/pause/{pause.group}",
        id=event.id,
    )


def _upgrade(event: UpgradeEvent) -> Content:
    record = event.record
    failed = f", {len(set(record.failed))} failed" if record.failed else ""
    facts = {
        "Cluster": record.cluster,
        "Target": target_of(record),
        "Nodes": f"{record.finished} replaced{failed}, group of {record.desired}",
        "By": record.requested_by or f"update.auto ({record.request.automatic})",
        "Next": event.next,
    }
    key = f"{record.cluster}/upgrade/{record.group}"
    return _of_workflow(event, f"group {record.group}", record.group, facts, key=key)


def _run(event: RunEvent) -> Content:
    record, dollars = event.record, dollars_of(event.record)
    facts = {
        "Groups": ", ".join(record.groups),
        "Method": record.method.value,
        "Nodes": f"{len(record.nodes)} planned, {len(record.gone)} gone, {len(record.launched)} launched",
        "Saves": f"${dollars:.3f} an hour" if dollars is not None else "",
        "By": record.requested_by or "its policy",
        "Next": event.next,
    }
    group = record.groups[0] if len(record.groups) == 1 else ""
    about = f"run {record.number} in {record.cluster}"
    return _of_workflow(event, about, group, facts, key=f"{record.cluster}/run/{record.number}")


def _of_workflow(
    event: UpgradeEvent | RunEvent, about: str, group: str, facts: Mapping[str, str], *, key: str
) -> Content:
    return Content(
        title=_line(f"{event.type.value}: {about}", LONGEST_TITLE),
        text=_line(event.reason or event.type.value, LONGEST_TEXT),
        facts=tuple((name, _line(value, LONGEST_FACT)) for name, value in facts.items() if value),
        about=_line(about, LONGEST_FACT),
        cluster=_line(event.cluster, LONGEST_FACT),
        group=_line(group, LONGEST_FACT) if group else "",
        key=key,
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
