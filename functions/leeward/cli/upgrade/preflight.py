"""Pre-flight of `leeward upgrade start`, made by the command before anything is begun.

Decides how blockers are reported; `leeward.upgrade` finds them. The state machine runs the same checks again."""

import argparse
from copy import copy
from datetime import timedelta

from leeward.cli.context import ClusterContext
from leeward.cli.fixes import fix_lines
from leeward.cli.output import emit, say, tell
from leeward.cli.upgrade.plan import preflight_of
from leeward.model.counts import count_of
from leeward.policy.durations import format_duration
from leeward.upgrade.preflight.findings import blocking
from leeward.upgrade.preflight.plan import UpgradePlan, plan_upgrade
from leeward.upgrade.record import UpgradeRecord

REFUSED = 1


def planned(
    arguments: argparse.Namespace, context: ClusterContext, group: str, record: UpgradeRecord | None
) -> UpgradePlan:
    """Return the plan of the group. A start without a target continues with that of an upgrade that was left."""
    asked = copy(arguments)
    asked.group = group
    left = record.request if record is not None and record.resumable and record.group == group else None
    if left is not None and not (asked.ami or asked.launch_template_version or asked.kubernetes_version):
        asked.ami = left.image or None
        asked.launch_template_version = left.template_version or None
        asked.kubernetes_version = left.kubernetes or None
    return plan_upgrade(preflight_of(asked, context), seed=arguments.seed)


def print_blocked(arguments: argparse.Namespace, plans: list[UpgradePlan]) -> int:
    """Print the blockers that are not overridden; return 1."""
    overridden = frozenset(arguments.override)
    found = [(plan.group, finding) for plan in plans for finding in blocking(plan.findings, overridden)]
    codes = ", ".join(sorted({finding.code.value for _, finding in found}))
    said = f"blocked by {codes}: nothing was started"
    document = {
        "group": arguments.group,
        "execution": None,
        "said": said,
        "findings": [one for plan in plans for one in plan.to_json()["findings"]],
    }
    if not arguments.view.output.for_people:
        emit(document, arguments.view, str)
        return REFUSED
    for group, finding in found:
        about = f"{group}: {finding.code.value}: {finding.object}: {finding.message}; fix"
        sentence, *commands = fix_lines(about, finding.fix)
        tell(sentence)
        for command in commands:
            say(command)
    tell(f"{said}; fix it, or let it pass with --override CODE")
    return REFUSED


def effect_of(plan: UpgradePlan) -> str:
    """Return what the upgrade will do, in a line for the question before it."""
    nodes, desired = sum(map(len, plan.waves)), plan.sizes.desired
    cost = "" if plan.cost is None else f", at most ${plan.cost:.2f} for surge nodes"
    return (
        f"{plan.group}: drain and TERMINATE {count_of(nodes, 'node')} in {count_of(len(plan.waves), 'wave')}, "
        f"at most {plan.parallel} at once; desired size {desired.before} -> {desired.during} -> {desired.after}; "
        f"takes about {format_duration(timedelta(seconds=plan.seconds))}{cost}"
    )
