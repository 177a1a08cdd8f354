"""Tables of an upgrade's plan and status, for people.

Decides nothing: the tables show what the JSON says."""

from collections.abc import Iterator
from datetime import timedelta

from leeward.cli.blockers.tables import blocker_tables
from leeward.cli.fixes import fix_lines
from leeward.cli.tables import Table, fields
from leeward.model.counts import count_of
from leeward.model.times import format_instant
from leeward.policy.durations import format_duration
from leeward.upgrade.preflight.findings import NEVER_OVERRIDDEN, Code, PreflightFinding, Severity, blocking
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.plan import UpgradePlan
from leeward.upgrade.status import UpgradePhase, UpgradeStatus


def plan_report(plan: UpgradePlan, preflight: Preflight, overridden: frozenset[Code]) -> list[Table | str]:
    """Build the plan: a summary of a few lines, the nodes in their waves, then the findings with their fixes."""
    return [*_summary(plan, preflight), _waves(plan), *_findings(plan, overridden)]


def recorded_report(plan: UpgradePlan, overridden: frozenset[Code], execution: str, at: str) -> list[Table | str]:
    """Build the same for an upgrade that has begun: when the plan was made, and for which execution."""
    head = f"upgrade of {plan.group}, as pre-flight found it at {at} for execution {execution}"
    return [head, _waves(plan), *_findings(plan, overridden)]


def _summary(plan: UpgradePlan, preflight: Preflight) -> list[str]:
    desired, most = plan.sizes.desired, plan.sizes.maximum
    target, above = preflight.target.template, count_of(desired.during - desired.before, "node")
    return [
        f"upgrade of {plan.group}: {count_of(len(preflight.old), 'node')} to replace",
        *fields(
            {
                "Target": target.label if target else _asked(preflight),
                "Strategy": f"{plan.strategy.value}, at most {count_of(plan.parallel, 'node')} unavailable at once",
                "Surge": f"at most {above} above the size, {preflight.extra} launched first",
                "Desired size": f"{desired.before} -> {desired.during} at most -> {desired.after}",
                "Maximum size": f"{most.before} -> {most.during} at most -> {most.after}",
                "Takes about": format_duration(timedelta(seconds=plan.seconds)),
                "Surge costs": "no price is known" if plan.cost is None else f"at most ${plan.cost:.2f}",
            }
        ),
    ]


def _asked(preflight: Preflight) -> str:
    inputs = preflight.inputs
    asked = inputs.image or (f"Kubernetes {inputs.version}" if inputs.version else "the group's own template")
    return f"{asked}, in a new launch template version"


def _waves(plan: UpgradePlan) -> Table:
    table = Table(("NODE", "WAVE"), kind="node")
    for number, wave in enumerate(plan.waves, 1):
        for node in wave:
            table.add(node, number)
    return table


def _findings(plan: UpgradePlan, overridden: frozenset[Code]) -> Iterator[Table | str]:
    """Yield the findings, the fix of each, and the verdict."""
    if not plan.findings:
        yield "Nothing blocks it."
        return
    table = Table(("SEVERITY", "CODE", "OBJECT", "FINDING"), optional=("OBJECT",), kind="finding")
    for finding in plan.findings:
        table.add(_severity(finding, overridden), finding.code.value, finding.object, finding.message)
    yield table
    fixes = [(f"fix {finding.code.value}, {finding.object}", finding.fix) for finding in plan.findings]
    for about, fix in dict.fromkeys(fixes):
        yield ""
        yield from fix_lines(about, fix)
    yield ""
    yield _verdict(plan, overridden)


def _severity(finding: PreflightFinding, overridden: frozenset[Code]) -> str:
    passed = finding.severity is Severity.BLOCKER and finding.code in overridden - NEVER_OVERRIDDEN
    return f"{finding.severity.value}{' (overridden)' if passed else ''}"


def _verdict(plan: UpgradePlan, overridden: frozenset[Code]) -> str:
    codes = sorted({one.code for one in blocking(plan.findings, overridden)})
    if not codes:
        return "Nothing blocks it."
    if NEVER_OVERRIDDEN & {*codes}:
        return f"Blocked by {', '.join(codes)}: fix it; {', '.join(NEVER_OVERRIDDEN & {*codes})} cannot be overridden."
    return f"Blocked by {', '.join(codes)}: fix it, or let it pass with --override CODE."


def status_report(group: str, status: UpgradeStatus) -> list[Table | str]:
    """Build one line for each known fact, then the blockers, a row for each cause."""
    known = {} if status.execution is None else {"Execution": status.execution or "none runs"}
    counts = f"{status.new} new, {status.old} old, {status.draining} draining, {status.failed} failed"
    starting = status.phase is UpgradePhase.STARTING  # no target is recorded yet, by which nodes are old
    lines = fields(
        {
            **known,
            **({} if starting else {"Nodes": counts}),
            **({"Now": status.step} if status.step else {}),
            **({} if starting else {"Gate": "open" if status.gate.open else "closed"}),
            **({"Done at about": format_instant(status.eta.replace(microsecond=0))} if status.eta is not None else {}),
        }
    )
    missing = [f"  missing: {one.message}" for one in status.gate.missing if not starting]
    return [f"{group}: {status.phase.value}", *lines, *missing, *blocker_tables(status.blockers)]
