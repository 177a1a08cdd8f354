"""Rules that must hold for messages: none is acknowledged without its consequence, malformed ones go to the dead
letters."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from leeward.policy.document import Rebalance
from simulation.facts import FAR_AHEAD, News, group_of, policy_of
from simulation.view import WorldView

WARNINGS = {  # that EC2 takes the instance two minutes later
    "EC2 Spot Instance Interruption Warning",
    "EC2 Capacity Reservation Instance Interruption Warning",
}
REDRIVEN = "redriven"  # the queue's own reason: delivered too often


YOUNG = 31 * 60  # seconds; a recommendation about an instance that was launched since is left, with a minute of grace


class MessageRules:
    """Rules for messages, one object for each run."""

    def __init__(self) -> None:
        self._news = News()
        self._put_aside: set[str] = set()

    def causes(self, view: WorldView) -> Iterator[str]:
        """Yield acknowledged messages without their record. Only instances that run in a selected group ask for a
        record; others are ignored for a reason.
        """
        for id_, body in self._news.of("acknowledged", view.acknowledged):
            message = parsed(body)
            if message is None or is_foreign(message, view.account):
                continue
            for cause, instance in _called_for(message, view):
                if view.running(instance) and not _known(cause, instance, view):
                    yield f"{id_}, {message['detail-type']} for {instance}"

    def malformed(self, view: WorldView) -> Iterator[str]:
        """Yield malformed messages that are not in the dead letters when they are acknowledged, or were redelivered
        until the queue gave up.
        """
        for letter in self._news.of("dead letters", view.dead_letters):
            self._put_aside.add(letter.message_id)
            if parsed(letter.body) is not None:
                yield f"{letter.message_id} is well-formed, put aside because: {letter.reason}"
            elif letter.reason in {"", REDRIVEN}:
                yield f"{letter.message_id} was delivered until the queue gave up"
        for id_, body in self._news.of("handled", view.acknowledged):
            if parsed(body) is None and id_ not in self._put_aside:
                yield f"{id_} was dropped"


def parsed(body: str) -> Mapping[str, Any] | None:
    """Parse an event of EventBridge; None where the body is none."""
    try:
        raw = json.loads(body)
    except ValueError:
        return None
    whole = isinstance(raw, dict) and isinstance(raw.get("source"), str) and isinstance(raw.get("detail-type"), str)
    return raw if whole else None


def is_foreign(message: Mapping[str, Any], account: tuple[str, str]) -> bool:
    """Return whether the message was written in another account or Region than this one."""
    return (message.get("account"), message.get("region")) != account


def warned_by(messages: Iterable[tuple[str, str]], account: tuple[str, str]) -> Iterator[str]:
    """Yield the instances that EC2 takes two minutes later, according to these messages of the account."""
    for _, body in messages:
        message = parsed(body)
        if message is not None and message["detail-type"] in WARNINGS and not is_foreign(message, account):
            yield message["detail"]["instance-id"]


def moved_near(messages: Iterable[tuple[str, str]], at: float) -> Iterator[str]:
    """Yield the instances whose maintenance comes soon, according to these messages; it does not wait for budgets."""
    for _, body in messages:
        message = parsed(body)
        if message is not None and message["detail-type"] == "AWS Health Event":
            starts = parsedate_to_datetime(message["detail"]["startTime"])
            if starts - datetime.fromtimestamp(at, UTC) <= FAR_AHEAD:
                yield from (entity["entityValue"] for entity in message["detail"]["affectedEntities"])


def _called_for(message: Mapping[str, Any], view: WorldView) -> Iterator[tuple[str, str]]:
    """Yield (how the cause's id begins, instance) of each record that the message calls for."""
    detail = message.get("detail") or {}
    match message["detail-type"]:
        case "EC2 Spot Instance Interruption Warning" | "EC2 Capacity Reservation Instance Interruption Warning":
            yield from _selected(message["id"], detail["instance-id"], view)
        case "EC2 Instance Rebalance Recommendation" if _replaces(detail["instance-id"], message["time"], view):
            yield from _selected(message["id"], detail["instance-id"], view)
        case "AWS Health Event" if not _is_called_off(detail["eventArn"], view):
            for entity in detail["affectedEntities"]:
                if not ("_REBOOT_" in detail["eventTypeCode"] and _waits(entity["entityValue"], view)):
                    yield from _selected(detail["eventArn"], entity["entityValue"], view)
        case "EC2 Instance-terminate Lifecycle Action":
            group, hook, instance = (
                detail[key] for key in ("AutoScalingGroupName", "LifecycleHookName", "EC2InstanceId")
            )
            if view.ours(hook, group) and (group, hook, instance) in view.waiting:  # else it came after its answer
                yield from _selected(detail["LifecycleActionToken"], instance, view)


def _selected(cause: str, instance: str, view: WorldView) -> Iterator[tuple[str, str]]:
    if policy_of(view, group_of(view, instance)) is not None:
        yield cause, instance


def _replaces(instance: str, at: str, view: WorldView) -> bool:
    """Return whether a recommendation calls for a replacement: a young node is left."""
    group = group_of(view, instance)
    policy = policy_of(view, group)
    launched = view.launched(instance)
    if group is None or policy is None:
        return False
    if launched is not None and datetime.fromisoformat(at).timestamp() - launched < YOUNG:
        return False
    return policy.interruption.rebalance is Rebalance.REPLACE and not group.capacity_rebalance


def _is_called_off(event: str, view: WorldView) -> bool:
    """Return whether AWS has cancelled the maintenance by now, with a message or without: it asks for nothing then."""
    return any(asked.called_off and asked.key == event for asked in view.asked)


def _waits(instance: str, view: WorldView) -> bool:
    """Return whether the policy waits for reboots of EC2, of which the minute reconciler claims those that are near."""
    policy = policy_of(view, group_of(view, instance))
    return policy is not None and policy.interruption.waits_for_reboot


def _known(cause: str, instance: str, view: WorldView) -> bool:
    return any(known.startswith(cause) for known in view.known_causes(instance))
