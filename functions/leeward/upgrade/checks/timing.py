"""Conditions that keep the upgrade from starting now: switches, freezes, windows and budgets of the policy."""

from collections.abc import Iterator

from leeward.budgets.disruption_budgets import limit, upgrade_budgets
from leeward.model.times import format_instant
from leeward.policy.document import Budget
from leeward.policy.schedule import any_active, is_active
from leeward.upgrade.findings import Code, Finding, blocker, warning
from leeward.upgrade.preflight import Preflight, policy_zones
from leeward.upgrade.windows import opens


def check(preflight: Preflight) -> Iterator[Finding]:
    """Yield the findings. A closed window is a warning: the run waits for it."""
    settings, update, now = preflight.world.policies.settings, preflight.policy.update, preflight.world.now
    if settings.paused:
        said, fix = "the cluster's settings say paused: nothing is started", "set paused to false in ClusterSettings"
        yield blocker(Code.CLUSTER_PAUSED, f"cluster {settings.name}", said, fix)
    until = opens(update.windows, settings.freeze, now)
    when = f"it can go on at {format_instant(until)}" if until else "there is no moment within a year when it could"
    if any_active(settings.freeze, now):
        yield warning(Code.FROZEN, f"cluster {settings.name}", f"a freeze is on: {when}", "start it now, it waits")
    elif update.windows and not any_active(update.windows, now):
        said = f"outside the windows of policy {preflight.policy.name}: {when}"
        yield warning(Code.WINDOW_CLOSED, f"group {preflight.group.name}", said, "start it now, it waits")
    for budget in upgrade_budgets(preflight.policy):
        yield from _budget(preflight, budget)


def _budget(preflight: Preflight, budget: Budget) -> Iterator[Finding]:
    zones = policy_zones(preflight.world, preflight.group, preflight.members, preflight.policy)
    total = len(zones) if budget.zone is None else zones.count(budget.zone)
    if total == 0 or limit(budget, total) > 0:
        return
    where = f" in {budget.zone}" if budget.zone else ""
    about = f"policy {preflight.policy.name}"
    if budget.window is None:
        said = f"a budget for Upgrade allows no node{where}, at any time"
        yield blocker(Code.BUDGET_ALLOWS_NONE, about, said, "raise its nodes, or give it a schedule and a duration")
    elif is_active(budget.window, preflight.world.now):
        until = opens((), (budget.window,), preflight.world.now)
        when = f" until {format_instant(until)}" if until else " within a year"
        said = f"a budget for Upgrade allows no node{where} now{when}"
        yield warning(Code.BUDGET_ALLOWS_NONE, about, said, "start it now, it waits")
