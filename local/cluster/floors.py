"""How many pods of a workload its PodDisruptionBudgets want healthy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .selectors import label_selector_matches


def floor_of(budgets: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> int | None:
    """What the budgets' own controller worked out (status.desiredHealthy), of several the strictest; None without one.

    `budgets`: those of the workload's namespace; `labels`: its pod template's.
    """
    floors = [
        int(budget["status"]["desiredHealthy"])
        for budget in budgets
        if label_selector_matches(budget["spec"].get("selector"), dict(labels))
        and "desiredHealthy" in (budget.get("status") or {})
    ]
    return max(floors, default=None)
