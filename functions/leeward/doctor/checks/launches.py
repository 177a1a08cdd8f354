"""Groups that LaunchInstances does not serve, as the last terminations, upgrades and disruption runs found."""

from collections.abc import Iterator

from leeward.doctor.checks.chosen import selected
from leeward.doctor.facts import Facts, InspectedCluster
from leeward.doctor.finding import About, Check, Finding
from leeward.doctor.reading import Unavailable
from leeward.model.group import Group
from leeward.model.launch_refusal import cause_in, fix_for

INSTEAD = "replacements come by the desired size, in zones that the group chooses"


def launches(facts: Facts, cluster: InspectedCluster) -> Iterator[Finding]:
    """Warn with cause and fix: nodes are still replaced, but not ahead of a drain in a named subnet."""
    for group, _ in selected(facts, cluster):
        about = About(Check.LAUNCHES, f"group {group.name}")
        reason = _refusal(facts, cluster, group)
        if not reason:
            yield about.ok("no launch was refused")
            continue
        cause = cause_in(reason)
        yield about.warning(f"LaunchInstances: {cause.value}; {INSTEAD}: {reason}", fix_for(cause))


def _refusal(facts: Facts, cluster: InspectedCluster, group: Group) -> str:
    """Return the last refusal, empty where every launch was served."""
    if not group.launch_template:
        return "ValidationError: the group has a launch configuration"
    records = () if isinstance(facts.records, Unavailable) else facts.records
    for record in records:
        answer = record.replacement
        if record.subject.group == group.name and answer is not None and answer.refused:
            return answer.reason
    upgrade, run = cluster.upgrades.get(group.name), cluster.disruption
    if upgrade is not None and not isinstance(upgrade, Unavailable) and upgrade.record.refusal:
        return upgrade.record.refusal
    if run is not None and not isinstance(run, Unavailable):
        return run.record.refusals.get(group.name, "")
    return ""
