"""The alarms: there, quiet, and heard by somebody."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.checks.functions import REVERT
from leeward.doctor.facts import Facts, Unread
from leeward.doctor.finding import About, Check, Finding


def alarms(facts: Facts) -> Iterator[Finding]:
    """Each is there and does not ring; its own description says what to do when it does."""
    if isinstance(facts.alarms, Unread):
        yield About(Check.ALARM, "all alarms").unknown(facts.alarms)
        return
    for name in expected.ALARMS:
        about = About(Check.ALARM, f"alarm {name}")
        found = facts.alarms.get(name)
        if found is None:
            yield about.failed("it is not there", REVERT)
        elif found.state == "ALARM":
            fix = found.description or "docs/operations.md, when something is wrong"
            yield about.failed(f"it is in ALARM: {found.reason}", fix)
        else:
            yield about.ok(found.state)


def actions(facts: Facts) -> Iterator[Finding]:
    """An alarm that tells nobody is seen only by who looks."""
    if isinstance(facts.alarms, Unread) or not facts.alarms:
        return
    about = About(Check.ALARM_ACTIONS, "all alarms")
    silent = [name for name in expected.ALARMS if name in facts.alarms and not facts.alarms[name].tells]
    if silent:
        yield about.warning(
            f"{len(silent)} of {len(facts.alarms)} notify no topic",
            "name an SNS topic in alarmTopic of the settings and cdk deploy, or watch the dashboard leeward-REGION",
        )
    else:
        yield about.ok("each notifies a topic")
