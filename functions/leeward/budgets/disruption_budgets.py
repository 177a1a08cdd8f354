"""Limit on how many nodes may be disrupted at once.

Decides from numbers that the caller counts; the caller also defines which nodes count as disrupting (deleting,
NotReady, tainted)."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from leeward.policy.document import Budget, Reason
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


def covers(budget: Budget, reason: str | None) -> bool:
    """Return whether the budget covers the reason. A budget without reasons covers Empty, Drifted, Underutilized and
    Expired, but not Upgrade: an upgrade has its own maxUnavailable, and is limited by budgets only where they name it.
    """
    return reason in budget.reasons if budget.reasons else reason != Reason.UPGRADE


def limit(budget: Budget, total: int) -> int:
    """Return the number of nodes that the budget allows out of `total`; percentages are rounded up, so that 10 % of one
    node is one node.
    """
    return -(-total * budget.nodes // 100) if budget.percent else budget.nodes


def tightest(allowances: Iterable[int | None]) -> int | None:
    """Return the smallest of the allowances; None, unbounded, yields to every number."""
    return min((allowed for allowed in allowances if allowed is not None), default=None)
