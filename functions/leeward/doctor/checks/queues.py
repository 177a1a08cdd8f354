"""Checks of the queues: they exist, are joined, admit Leeward's rules, are read in time, and hold no unread dead
letters."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from leeward.doctor import expected
from leeward.doctor.checks.functions import REVERT
from leeward.doctor.facts import Facts, Identity, Queue
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable

OLDEST = 60  # seconds a message may wait: half of what a spot warning leaves


def queues(facts: Facts) -> Iterator[Finding]:
    """Check that each exists; failed messages of those that fn interruption reads go to their dead-letter queue."""
    for name, found in facts.queues.items():
        about = About(Check.QUEUE, f"queue {name}")
        if isinstance(found, Unavailable):
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
        if isinstance(found, Unavailable):
            yield about.unknown(found)
        elif found is not None:
            rules = [name for name, target in expected.QUEUE_RULES.items() if target == f":{queue}"]
            missing = [name for name in rules if not _admits(found, _arn(name, facts.identity))]
            if missing:
                yield about.failed(f"its policy does not let these rules send: {', '.join(missing)}", REVERT)
            else:
                yield about.ok("our rules may send")


def age(facts: Facts) -> Iterator[Finding]:
    """Check how long the oldest message waits."""
    about = About(Check.QUEUE_AGE, f"queue {expected.QUEUE}")
    seconds = facts.oldest_message
    if isinstance(seconds, Unavailable):
        yield about.unknown(seconds)
    elif seconds is not None and seconds >= OLDEST:
        yield about.failed(
            f"its oldest message has waited for {seconds:.0f} s, half of what a spot warning leaves is {OLDEST} s",
            "aws logs tail /aws/lambda/leeward-interruption --since 1h --filter-pattern ERROR",
        )
    else:
        yield about.ok("nothing waits" if not seconds else f"the oldest message has waited for {seconds:.0f} s")


def dead_letters(facts: Facts) -> Iterator[Finding]:
    """Report dead letters: unreadable or failed messages need an operator; undelivered events concern no node."""
    for name in (expected.DEAD_LETTERS, expected.UNDELIVERED):
        about = About(Check.DEAD_LETTERS, f"queue {name}")
        found = facts.queues.get(name)
        if isinstance(found, Unavailable):
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
        said = f"{found.messages} messages could not be read or handled"
        return said, f"look at them (attribute reason): {look}; fix the cause, then redrive them or delete them"
    return f"{found.messages} events reached neither bus nor webhook", f"each names its error: {look}"


def _arn(rule: str, identity: Identity) -> str:
    return f"arn:{identity.partition}:events:{identity.region}:{identity.account}:rule/{rule}"


def _admits(queue: Queue, rule: str) -> bool:
    return any(_allows(statement, rule) for statement in _many(queue.policy.get("Statement")))


def _allows(statement: Mapping[str, Any], rule: str) -> bool:
    """Return whether the statement admits EventBridge, from this rule. One without a condition admits every rule."""
    if statement.get("Effect") != "Allow":
        return False
    principal = statement.get("Principal")
    services = (
        _many(principal.get("Service") or principal.get("AWS")) if isinstance(principal, Mapping) else [principal]
    )
    if not {"events.amazonaws.com", "*"} & set(services):
        return False
    if not any(fnmatchcase("sqs:sendmessage", str(action).lower()) for action in _many(statement.get("Action"))):
        return False
    conditions: Mapping[str, Mapping[str, Any]] = statement.get("Condition") or {}
    sources = [
        str(source)
        for tests in conditions.values()
        for key, values in tests.items()
        if key.lower() == "aws:sourcearn"
        for source in _many(values)
    ]
    return not conditions or any(fnmatchcase(rule, source) for source in sources)


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]
