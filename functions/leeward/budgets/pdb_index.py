"""Index of the PodDisruptionBudgets that select a pod, with one cached lookup for pods with the same labels."""

from collections.abc import Iterable

from leeward.budgets.pdb import blocking_budgets
from leeward.model.pod import Pod, PodDisruptionBudget

_Look = tuple[str, tuple[tuple[str, str], ...]]


class BudgetIndex:
    """Budget index of one cluster. Pods of one workload share their labels, so that most lookups are cached."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_namespace: dict[str, list[PodDisruptionBudget]] = {}
        for budget in sorted(budgets, key=lambda budget: (budget.namespace, budget.name)):
            self._by_namespace.setdefault(budget.namespace, []).append(budget)
        self._known: dict[_Look, tuple[PodDisruptionBudget, ...]] = {}

    def selecting(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select the pod, by name."""
        near = self._by_namespace.get(pod.namespace)
        if not near:
            return ()
        look = pod.namespace, tuple(sorted(pod.labels.items()))
        found = self._known.get(look)
        if found is None:
            found = self._known[look] = tuple(budget for budget in near if budget.selects(pod))
        return found

    def why_blocked(self, pod: Pod) -> str:
        """Return which budgets forbid evicting the pod now, empty when none does; in Karpenter's wording, if any."""
        names = blocking_budgets(pod, self.selecting(pod))
        if not names:
            return ""
        if len(names) > 1:
            return f"{', '.join(names)} all select pod {pod.key}: the API evicts no such pod"
        return f"{names[0]} prevents pod evictions ({pod.key})"
