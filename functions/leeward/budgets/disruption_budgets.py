"""Disruption budgets of a policy: how many nodes they allow to be disrupted at once.

Decides from counts; `budgets.usage` counts the nodes of a snapshot. Which nodes count as disrupted is decided here."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of
from leeward.policy.document import Budget, DisruptionReason, NodePolicy
from leeward.policy.schedule import is_active


def allowance(
    budgets: Sequence[Budget], *, reason: str | None, zone: str | None, total: int, disrupting: int, now: datetime
) -> int | None:
    """Return how many more nodes may be disrupted now; None when no budget limits it. Never below 0.

    `zone` None: the budgets without a zone, with the counts of all nodes of the policy; a zone: that zone's own
    budgets, with that zone's counts. A node has to pass both. `reason` None is an involuntary change that can be
    planned for, such as scheduled maintenance far ahead: budgets without reasons cover it (docs/policy.md).
    """
    matching = (budget for budget in budgets if budget.zone == zone and covers(budget, reason))
    limits = [limit(budget, total) for budget in matching if budget.window is None or is_active(budget.window, now)]
    return max(0, min(limits) - disrupting) if limits else None


def allowance_among(
    budgets: Sequence[Budget],
    nodes: Collection[str],
    disrupting: Collection[str],
    *,
    reason: str | None,
    zone: str | None,
    now: datetime,
) -> int | None:
    """Return the allowance for these nodes: `nodes` has the zone of each, `disrupting` of each that is disrupted."""

    def count(zones: Collection[str]) -> int:
        return sum(zone in {None, one} for one in zones)

    return allowance(budgets, reason=reason, zone=zone, total=count(nodes), disrupting=count(disrupting), now=now)


def covers(budget: Budget, reason: str | None) -> bool:
    """Return whether the budget covers the reason. A budget without reasons covers Empty, Drifted, Underutilized and
    Expired, but not Upgrade: an upgrade has its own maxUnavailable, and is limited by budgets only where they name it.
    """
    return reason in budget.reasons if budget.reasons else reason != DisruptionReason.UPGRADE


def never_allows(budgets: Iterable[Budget], reason: str, zone: str) -> bool:
    """Return whether a budget of zero that is always in force forbids the reason in the zone: a switch of the operator,
    not a limit that passes.
    """
    return any(
        budget.nodes <= 0 and budget.window is None and budget.zone in {None, zone} and covers(budget, reason)
        for budget in budgets
    )


def upgrade_budgets(policy: NodePolicy) -> tuple[Budget, ...]:
    """Return the budgets that name the reason Upgrade: no other limits an upgrade."""
    return tuple(budget for budget in policy.disruption.budgets if covers(budget, DisruptionReason.UPGRADE))


def limit(budget: Budget, total: int) -> int:
    """Return the number of nodes that the budget allows out of `total`; percentages are rounded up, so that 10 % of one
    node is one node.
    """
    return -(-total * budget.nodes // 100) if budget.percent else budget.nodes


def tightest(allowances: Iterable[int | None]) -> int | None:
    """Return the smallest of the allowances; None, unbounded, yields to every number."""
    return min((allowed for allowed in allowances if allowed is not None), default=None)


def why_disrupted(node: Node, now: datetime) -> str:
    """Return why the node counts as disrupted already, empty when it does not. A cordon alone does not count: an
    upgrade cordons old nodes that are still waiting to be drained. Neither does a taint that its controller has
    forgotten.
    """
    taint = disruption_taint_of(node, now)
    if taint:
        return f"it is terminating already (taint {taint})"
    if node.deleting:
        return "its Node object is being deleted"
    return "" if node.ready else "it is NotReady"
