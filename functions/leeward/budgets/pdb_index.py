"""Index of the PodDisruptionBudgets of a cluster: which of them select a pod, without matching all of them."""

from collections.abc import Iterable

from leeward.budgets.pdb import blocking_budgets
from leeward.model.pod import Pod, PodDisruptionBudget

_Labels = tuple[tuple[str, str], ...]


class PdbIndex:
    """Index of the budgets that select a pod.

    A budget with `matchLabels` can only select pods that carry its first pair; the others are matched with every pod of
    their namespace. Pods of one workload share their labels, so that most lookups are cached.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._by_pair: dict[tuple[str, str, str], list[PodDisruptionBudget]] = {}
        self._others: dict[str, list[PodDisruptionBudget]] = {}
        self._known: dict[tuple[str, _Labels], tuple[PodDisruptionBudget, ...]] = {}
        for budget in budgets:
            pairs = ((budget.selector or {}).get("matchLabels") or {}).items()
            if pairs:
                key, value = min(pairs)
                self._by_pair.setdefault((budget.namespace, key, value), []).append(budget)
            else:
                self._others.setdefault(budget.namespace, []).append(budget)

    def selecting(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select the pod, by name."""
        labels = tuple(pod.labels.items())
        budgets = self._known.get((pod.namespace, labels))
        if budgets is None:
            possible = [*self._others.get(pod.namespace, ())]
            for key, value in labels:
                possible += self._by_pair.get((pod.namespace, key, value), ())
            selecting = (budget for budget in possible if budget.selects(pod))
            budgets = tuple(sorted(selecting, key=lambda budget: budget.name))
            self._known[pod.namespace, labels] = budgets
        return budgets

    def why_blocked(self, pod: Pod) -> str:
        """Return which budgets forbid evicting the pod now, empty when none does; in Karpenter's wording, if any."""
        names = blocking_budgets(pod, self.selecting(pod))
        if not names:
            return ""
        if len(names) > 1:
            return f"{', '.join(names)} all select pod {pod.key}: the API evicts no such pod"
        return f"{names[0]} prevents pod evictions ({pod.key})"
