"""Watcher of PodDisruptionBudgets: records each eviction or deletion after which a budget is no longer satisfied."""

from __future__ import annotations

from local.cluster.budgets import is_healthy
from local.cluster.history import Cause, History
from local.cluster.objects import (
    Obj,
    condition_of,
    is_deleting,
    is_ready,
    labels_of,
    namespace_of,
    node_of,
    path_name,
)
from local.cluster.selectors import label_selector_matches
from local.cluster.store import Change, Store


def budgets_of(store: Store, pod: Obj) -> list[Obj]:
    """Return the budgets whose selector matches the pod."""
    return [
        budget
        for budget in store.each("poddisruptionbudgets")
        if namespace_of(budget) == namespace_of(pod)
        and label_selector_matches(budget["spec"].get("selector"), labels_of(pod))
    ]


class LossRecorder:
    """Observer of the mirror. The minimum is the budget's own status.desiredHealthy, the healthy pods are counted."""

    def __init__(self, store: Store, history: History) -> None:
        self._store = store
        self._history = history

    def observe(self, change: Change) -> None:
        old, pod = change.old, change.obj
        if change.resource != "pods" or old is None or not is_healthy(old) or not is_deleting(pod):
            return
        for budget in budgets_of(self._store, pod):
            desired = int((budget.get("status") or {}).get("desiredHealthy", 0))
            healthy = sum(
                is_healthy(other)
                for other in self._store.each("pods")
                if namespace_of(other) == namespace_of(pod)
                and label_selector_matches(budget["spec"].get("selector"), labels_of(other))
            )
            if healthy < desired <= healthy + 1:
                self._history.add_violation(
                    pdb=path_name(budget), pod=path_name(pod), cause=self._cause(pod), healthy=healthy, desired=desired
                )

    def _cause(self, pod: Obj) -> Cause:
        condition = condition_of(pod, "DisruptionTarget") or {}
        if condition.get("reason") == "EvictionByEvictionAPI":
            return Cause.EVICTION
        node = self._store.find("nodes", node_of(pod) or "")
        return Cause.DELETE if node is not None and is_ready(node) else Cause.NODE_LOSS
