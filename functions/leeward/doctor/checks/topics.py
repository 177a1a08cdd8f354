"""Checks of SNS topics: those that alarms notify can be written to by CloudWatch, those of `senders.topics` wrap what
they deliver."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from leeward.doctor.checks.queues import many
from leeward.doctor.facts import Facts, TopicKey
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact

CLOUDWATCH = "cloudwatch.amazonaws.com"
NEEDED = ("Decrypt", "GenerateDataKey")  # of KMS
STATEMENT = "docs/deploy.md#an-encrypted-topic-for-the-alarms"


def keys(facts: Facts) -> Iterator[Finding]:
    """Check that CloudWatch can use the key of each topic that alarms notify: without, an alarm rings and no message is
    sent.
    """
    for topic, found in facts.alarm_topics.items():
        about = About(Check.ALARM_TOPIC, f"topic {topic}")
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found is None:
            yield about.failed("it is not there", "set alarmTopic to a topic that exists, and deploy")
        elif found.aws_managed:
            yield about.failed(
                f"it is encrypted with {found.id}, which CloudWatch may not use: no alarm reaches it",
                f"encrypt it with a key of your own whose policy lets CloudWatch use it ({STATEMENT})",
            )
        elif found.id and not _admits(found):
            yield about.failed(
                f"the policy of its key {found.id} does not let {CLOUDWATCH} use it: no alarm reaches it",
                f"add the statement of {STATEMENT} to the key's policy",
            )
        else:
            yield about.ok("CloudWatch may use its key" if found.id else "not encrypted by a key")


def raw_delivery(facts: Facts) -> Iterator[Finding]:
    """Check that no topic of `senders.topics` delivers raw messages. SNS's envelope shows that a message comes from a
    topic, whose publishers may write lifecycle notifications and nothing else.
    """
    for topic, found in facts.raw_subscriptions.items():
        about = About(Check.SENDER_TOPIC, f"topic {topic}")
        if isinstance(found, UnreadFact):
            yield about.unknown(found)
        elif found:
            yield about.failed(
                f"its subscription {found[0]} delivers raw messages: they are not told from AWS's own events",
                f"aws sns set-subscription-attributes --subscription-arn {found[0]} "
                "--attribute-name RawMessageDelivery --attribute-value false",
            )
        else:
            yield about.ok("no raw delivery to our queue")


def _admits(key: TopicKey) -> bool:
    """Return whether the key's policy lets CloudWatch do each needed action; conditions are not evaluated."""
    statements = [one for one in many(key.policy.get("Statement")) if _names_cloudwatch(one)]
    return all(
        any(fnmatchcase(f"kms:{action}", str(pattern)) for one in statements for pattern in many(one.get("Action")))
        for action in NEEDED
    )


def _names_cloudwatch(statement: Mapping[str, Any]) -> bool:
    principal = statement.get("Principal")
    services = many(principal.get("Service")) if isinstance(principal, Mapping) else [principal]
    return statement.get("Effect") == "Allow" and bool({CLOUDWATCH, "*"} & set(services))
