"""Checks of the queues: they exist, are joined, admit Leeward's rules, are read in time, and hold no unread dead
letters."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from leeward.doctor import expected
from leeward.doctor.checks.functions import REVERT
from leeward.doctor.facts import CallerIdentity, Facts, Queue
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact
from leeward.model.counts import count_of

OLDEST: Mapping[str, int] = {expected.QUEUE: 60, expected.STATE_CHANGES: 600}
"""Queue -> seconds a message may wait: half of what a spot warning leaves; a state change reports what has happened."""
_LOOK = "aws logs tail /aws/lambda/leeward-interruption --since 1h --filter-pattern '?ERROR ?WARNING'"


def queues(facts: Facts) -> Iterator[Finding]:
    """Check that each exists; failed messages of those that fn interruption reads go to their dead-letter queue."""
    for name, found in facts.queues.items():
        about = About(Check.QUEUE, f"queue {name}")
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found is None:
            yield about.failed("it is not there", REVERT)
        elif name in expected.READ_QUEUES and not found.dead_letters.endswith(f":{expected.DEAD_LETTERS}"):
            to = found.dead_letters or "nowhere"
            yield about.failed(f"failed messages are sent to {to}, expected {expected.DEAD_LETTERS}", REVERT)
        else:
            yield about.ok("there")


def policy(facts: Facts) -> Iterator[Finding]:
    """Check that every rule that fills a queue may send: EventBridge gives no notice when it may not."""
    for queue in expected.READ_QUEUES:
        about = About(Check.QUEUE_POLICY, f"queue {queue}")
        found = facts.queues.get(queue)
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found is not None:
            rules = [name for name, target in expected.QUEUE_RULES.items() if target == f":{queue}"]
            missing = [name for name in rules if not _admits(found, _arn(name, facts.identity))]
            if missing:
                yield about.failed(f"its policy does not let these rules send: {', '.join(missing)}", REVERT)
            else:
                yield about.ok("our rules may send")


def age(facts: Facts) -> Iterator[Finding]:
    """Check how long the oldest message of each queue waits unread, and since when one fails."""
    for queue, limit in OLDEST.items():
        about = About(Check.QUEUE_AGE, f"queue {queue}")
        found = facts.ages[queue]
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found.failing is not None and found.failing >= limit:
            yield about.failed(f"the handling of a message fails since {found.failing:.0f} s", _LOOK)
        elif found.unread is not None and found.unread >= limit:
            yield about.failed(
                f"a message waits unread since {found.unread:.0f} s, expected less than {limit} s", _LOOK
            )
        else:
            oldest = max(found.unread or 0, found.failing or 0)
            waits = f"the oldest message waits for {oldest:.0f} s"
            yield about.ok(waits if oldest else "no message waits unread, and none fails")


def dead_letters(facts: Facts) -> Iterator[Finding]:
    """Report dead letters: unreadable or failed messages need an operator; undelivered events concern no node."""
    for name in (expected.DEAD_LETTERS, expected.UNDELIVERED):
        about = About(Check.DEAD_LETTERS, f"queue {name}")
        found = facts.queues.get(name)
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found is not None and found.messages:
            said, fix = _unread_messages(name, found)
            yield about.failed(said, fix) if name == expected.DEAD_LETTERS else about.warning(said, fix)
        elif found is not None:
            yield about.ok("empty")


def _unread_messages(name: str, found: Queue) -> tuple[str, str]:
    look = (
        f"aws sqs receive-message --queue-url {found.url} --message-attribute-names All --max-number-of-messages 10"
        " --visibility-timeout 0"
    )
    if name == expected.DEAD_LETTERS:
        said = f"{count_of(found.messages, 'message')} could not be read or handled"
        return (
            said,
            f"look at them: {look}; fix the cause, then redrive them (docs/runbooks.md#dead-letters) or delete them",
        )
    return f"{count_of(found.messages, 'event')} reached neither bus nor webhook", f"each names its error: {look}"


def _arn(rule: str, identity: CallerIdentity) -> str:
    return f"arn:{identity.partition}:events:{identity.region}:{identity.account}:rule/{rule}"


def _admits(queue: Queue, rule: str) -> bool:
    return any(_allows(statement, rule) for statement in many(queue.policy.get("Statement")))


def _allows(statement: Mapping[str, Any], rule: str) -> bool:
    """Return whether the statement admits EventBridge, from this rule. One without a condition admits every rule."""
    if statement.get("Effect") != "Allow":
        return False
    principal = statement.get("Principal")
    services = many(principal.get("Service") or principal.get("AWS")) if isinstance(principal, Mapping) else [principal]
    if not {"events.amazonaws.com", "*"} & set(services):
        return False
    if not any(fnmatchcase("sqs:sendmessage", str(action).lower()) for action in many(statement.get("Action"))):
        return False
    conditions: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {}
    sources = [
        str(source)
        for tests in conditions.values()
        for key, values in tests.items()
        if key.lower() == "aws:sourcearn"
        for source in many(values)
    ]
    return not conditions or any(fnmatchcase(rule, source) for source in sources)


def many(value: Any) -> list[Any]:
    """Return the values of a policy's element, which may stand alone."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
