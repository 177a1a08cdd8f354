"""PDB minimum: the healthy pods of a workload that its PodDisruptionBudgets require."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .selectors import label_selector_matches


def minimum_of(budgets: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> int | None:
    """Return the minimum that the budgets' own controller computed (status.desiredHealthy), the strictest of several;
    None without one.

    `budgets`: those of the workload's namespace; `labels`: its pod template's.
    """
    minima = [
        int(budget["status"]["desiredHealthy"])
        for budget in budgets
        if label_selector_matches(budget["spec"].get("selector"), dict(labels))
        and "desiredHealthy" in (budget.get("status") or {})
    ]
    return max(minima, default=None)
