"""Checks of the alarms: they exist, are quiet, and notify a recipient."""

from collections.abc import Iterator

from leeward.doctor import expected
from leeward.doctor.checks.functions import REVERT
from leeward.doctor.facts import Facts
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable


def alarms(facts: Facts) -> Iterator[Finding]:
    """Check that each alarm exists and does not ring; its own description names the fix when it does."""
    if isinstance(facts.alarms, Unavailable):
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
    """Check that alarms have an action: an alarm without one is seen only by people who look at it."""
    if isinstance(facts.alarms, Unavailable) or not facts.alarms:
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
