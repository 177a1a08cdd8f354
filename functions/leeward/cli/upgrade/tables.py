"""Tables of an upgrade's plan and status, for people.

Decides nothing: the tables show what the JSON says."""

from datetime import timedelta

from rich.console import Group as Rows
from rich.console import RenderableType
from rich.table import Table

from leeward.model.times import format_instant
from leeward.policy.durations import format_duration
from leeward.upgrade.preflight.findings import Code, Finding, Severity
from leeward.upgrade.preflight.model import Preflight
from leeward.upgrade.preflight.plan import Plan
from leeward.upgrade.status import Status

MOST_WAVES, MOST_NAMES = 20, 8  # of a large plan; the JSON has all of it


def plan_table(plan: Plan, preflight: Preflight, overridden: frozenset[Code]) -> RenderableType:
    """Build the plan: a summary of a few lines, the waves, then the findings."""
    return Rows(_summary(plan, preflight), *_waves(plan), *_findings(plan, overridden))


def recorded_table(plan: Plan, overridden: frozenset[Code], execution: str, at: str) -> RenderableType:
    """Build the same for an upgrade that has begun: when the plan was made, and for which execution."""
    head = f"upgrade of {plan.group}, as pre-flight found it at {at} for execution {execution}"
    return Rows(head, *_waves(plan), *_findings(plan, overridden))


def _summary(plan: Plan, preflight: Preflight) -> RenderableType:
    old = len(preflight.old)
    table = Table(title=f"upgrade of {plan.group}: {_nodes(old)} to replace", title_justify="left", title_style="bold")
    table.add_column("what")
    table.add_column("value", overflow="fold")
    desired, most = plan.sizes.desired, plan.sizes.maximum
    table.add_row("target", preflight.target.template.label if preflight.target.template else _asked(preflight))
    table.add_row("strategy", f"{plan.strategy.value}, at most {_nodes(plan.parallel)} unavailable at once")
    table.add_row("surge", f"{_nodes(preflight.extra)} come first (the most that is allowed: {plan.surge})")
    table.add_row("desired size", f"{desired.before} → {desired.during} at most → {desired.after}")
    table.add_row("maximum size", f"{most.before} → {most.during} at most → {most.after}")
    table.add_row("takes about", format_duration(timedelta(seconds=plan.seconds)))
    table.add_row("surge costs", "no price is known" if plan.cost is None else f"at most ${plan.cost:.2f}")
    return table


def _asked(preflight: Preflight) -> str:
    inputs = preflight.inputs
    asked = inputs.image or (f"Kubernetes {inputs.version}" if inputs.version else "the group's own template")
    return f"{asked}, in a new launch template version"


def _waves(plan: Plan) -> tuple[RenderableType, ...]:
    if not plan.waves:
        return ()
    table = Table("wave", "nodes", "names")
    for number, wave in enumerate(plan.waves[:MOST_WAVES], 1):
        table.add_row(str(number), str(len(wave)), _some(wave))
    left = plan.waves[MOST_WAVES:]
    if left:
        table.add_row("…", str(sum(len(wave) for wave in left)), f"in {len(left)} more waves")
    return (table,)


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _findings(plan: Plan, overridden: frozenset[Code]) -> tuple[RenderableType, ...]:
    if not plan.findings:
        return ("Nothing stands in the way.",)
    table = Table("finding", "object", "what", "fix")
    for finding in plan.findings:
        table.add_row(_kind(finding, overridden), finding.object, finding.message, finding.fix)
    return (table, _verdict(plan, overridden))


def _kind(finding: Finding, overridden: frozenset[Code]) -> str:
    passed = finding.severity is Severity.BLOCKER and finding.code in overridden
    return f"{finding.severity.value}{' (overridden)' if passed else ''}: {finding.code.value}"


def _verdict(plan: Plan, overridden: frozenset[Code]) -> str:
    codes = sorted({one.code.value for one in plan.findings if one.severity is Severity.BLOCKER} - {*overridden})
    if not codes:
        return "Nothing blocks it."
    return f"Blocked by {', '.join(codes)}: fix it, or let it pass with --override CODE."


def _nodes(count: int) -> str:
    return f"{count} node{'' if count == 1 else 's'}"


def status_table(group: str, status: Status) -> RenderableType:
    """Build one line for each known fact, then the blockers."""
    table = Table(title=f"{group}: {status.phase.value}", title_justify="left", title_style="bold")
    table.add_column("what")
    table.add_column("value", overflow="fold")
    if status.execution is not None:
        table.add_row("execution", status.execution or "none runs")
    table.add_row("nodes", f"{status.new} new, {status.old} old, {status.draining} draining, {status.failed} failed")
    table.add_row("gate", "open" if status.gate.open else "closed")
    for missing in status.gate.missing:
        table.add_row("", missing.message)
    table.add_row("done at about", format_instant(status.eta) if status.eta is not None else "not known")
    if not status.blockers:
        return table
    blocks = Table("node", "pod", "blocked by", "until", "fix")
    for one in status.blockers:
        until = format_instant(one.until) if one.until is not None else "no end is known"
        blocks.add_row(one.node, one.pod or "", one.object, until, one.fix)
    return Rows(table, blocks)
