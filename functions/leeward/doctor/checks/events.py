"""Checks of rules, schedules, event sources and alarms: what invokes Leeward exists, is enabled, and has the right
target; what watches it is quiet, and notifies a recipient."""

from collections.abc import Iterator, Mapping

from leeward.doctor import expected
from leeward.doctor.checks.functions import REVERT
from leeward.doctor.facts import EventSource, Facts
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import UnreadFact

_LONGEST = 64  # characters of a rule's name
_ON_ITS_WAY = frozenset({"Creating", "Enabling", "Updating"})


def rules(facts: Facts) -> Iterator[Finding]:
    """Check the rules by which EventBridge notifies Leeward."""
    yield from _each(facts, Check.RULE, "rule", {**expected.RULES, **_webhooks(facts)})


def schedules(facts: Facts) -> Iterator[Finding]:
    """Check the schedules of Leeward's recurring work."""
    yield from _each(facts, Check.SCHEDULE, "schedule", expected.SCHEDULES)


def sources(facts: Facts) -> Iterator[Finding]:
    """Check the sources that Lambda reads for Leeward's functions."""
    for function, parts in expected.SOURCES.items():
        about = About(Check.EVENT_SOURCE, f"event source of {function}")
        listed = facts.sources.get(function, ())
        if isinstance(listed, UnreadFact):
            yield about.unknown(listed)
            continue
        for part in parts:
            found = next((source for source in listed if part in source.source), None)
            yield _source(about, found) if found else about.failed(f"it is not there: nothing reads {part[1:]}", REVERT)


def _source(about: About, found: EventSource) -> Finding:
    if found.state in _ON_ITS_WAY:
        return about.warning(f"it is {found.state}", "run leeward doctor again in a minute")
    if found.state != "Enabled":
        return about.failed(
            f"it is {found.state}: nothing reads {found.source}",
            f"aws lambda update-event-source-mapping --uuid {found.id} --enabled",
        )
    if found.result.startswith("PROBLEM"):
        return about.failed(f"Lambda says: {found.result}", "give the function's role what that names: cdk deploy")
    return about.ok(found.state)


def _each(facts: Facts, check: Check, kind: str, wanted: Mapping[str, str]) -> Iterator[Finding]:
    if isinstance(facts.rules, UnreadFact):
        yield About(check, f"all {kind}s").unknown(facts.rules)
        return
    for name, target in wanted.items():
        about = About(check, f"{kind} {name}")
        if name not in facts.rules:
            yield about.failed("it is not there", REVERT)
        elif not facts.rules[name]:
            bus = "" if target else f" --event-bus-name {expected.WEBHOOK_BUS}"
            yield about.failed("it is disabled", f"aws events enable-rule --name {name}{bus}")
        else:
            yield _aimed(facts, about, name, target) if target else about.ok("enabled")


def _aimed(facts: Facts, about: About, name: str, target: str) -> Finding:
    found = facts.targets.get(name, ())
    if isinstance(found, UnreadFact):
        return about.unknown(found)
    if any(arn.endswith(target) for arn in found):
        return about.ok("enabled")
    named = f"its targets are {', '.join(found)}" if found else "it has no target"
    return about.failed(f"{named}, expected {target.lstrip(':')}", REVERT)


def _webhooks(facts: Facts) -> dict[str, str]:
    """Return a rule for each cluster that names a webhook, whatever its target; names that were cut are left out."""
    named = {}
    for cluster in facts.clusters:
        name = f"leeward-{cluster.name}-notifications"
        if not isinstance(cluster.policies, UnreadFact) and cluster.policies.settings.webhook and len(name) <= _LONGEST:
            named[name] = ""
    return named


def alarms(facts: Facts) -> Iterator[Finding]:
    """Check that each alarm exists and does not ring; its own description names the fix when it does."""
    if isinstance(facts.alarms, UnreadFact):
        yield About(Check.ALARM, "all alarms").unknown(facts.alarms)
        return
    for name in expected.ALARMS:
        about = About(Check.ALARM, f"alarm {name}")
        found = facts.alarms.get(name)
        if found is None:
            yield about.failed("it is not there", REVERT)
        elif found.state == "ALARM":
            fix = found.description or "docs/troubleshooting.md"
            yield about.failed(f"it is in ALARM: {found.reason}", fix)
        else:
            yield about.ok(found.state)


def actions(facts: Facts) -> Iterator[Finding]:
    """Check that alarms have an action: an alarm without one is seen only by people who look at it."""
    if isinstance(facts.alarms, UnreadFact) or not facts.alarms:
        return
    about = About(Check.ALARM_ACTIONS, "all alarms")
    silent = [name for name in expected.ALARMS if name in facts.alarms and not facts.alarms[name].notifies]
    if silent:
        yield about.warning(
            f"{len(silent)} of {len(facts.alarms)} notify no topic",
            "name an SNS topic in alarmTopic of the settings and cdk deploy, or watch the dashboard leeward-REGION",
        )
    else:
        yield about.ok("each notifies a topic")
