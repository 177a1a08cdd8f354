"""PodDisruptionBudgets that will hold the pods of old nodes: always, now, or because of how they are written.

A pod that gets a second replica before it leaves is judged with that replica beside it.

Sources: policy/v1 (minAvailable, maxUnavailable and unhealthyPodEvictionPolicy), the Eviction API (a pod that
several budgets select cannot be evicted), EKS' known reasons of PodEvictionFailure."""

from collections import Counter
from collections.abc import Iterator

from leeward.budgets.pdb import evicts_unready, refusal_beside_second, why_never
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.upgrade.findings import Code, Finding, Severity
from leeward.upgrade.preflight import Preflight


def check(preflight: Preflight) -> Iterator[Finding]:
    """Yield one finding for each budget, and for each set of budgets that select the same pod."""
    severity = Severity.WARNING if preflight.forced else Severity.BLOCKER
    holding, several = _by_budget(preflight)
    selected = _selected(preflight)
    for name in sorted(holding):
        budget, pods = holding[name]
        never = why_never(budget, budget.expected_pods or selected[name])
        failing = [pod for pod in pods if not pod.ready and pod.phase == "Running"]
        if never:
            yield _never(budget, name, never, severity)
        elif budget.disruptions_allowed <= 0 and failing and not evicts_unready(budget):
            yield _on_failing(budget, name, failing, severity)
        elif budget.disruptions_allowed <= 0:
            yield _none_now(budget, name, pods)
    for names, pods in sorted(several.items()):
        yield _several(names, pods, severity)


def _by_budget(
    preflight: Preflight,
) -> tuple[dict[str, tuple[PodDisruptionBudget, list[Pod]]], dict[tuple[str, ...], list[Pod]]]:
    """Return the pods of old nodes by the budget that selects them alone, and by the budgets that
    select them together.
    """
    alone: dict[str, tuple[PodDisruptionBudget, list[Pod]]] = {}
    several: dict[tuple[str, ...], list[Pod]] = {}
    for node in sorted(preflight.pods):
        for pod in preflight.pods[node]:
            budgets = preflight.budgets_of(pod)
            if pod.key in preflight.beside.surged and refusal_beside_second(pod, budgets) is None:
                continue
            if len(budgets) > 1:
                several.setdefault(tuple(budget.key for budget in budgets), []).append(pod)
            for budget in budgets:
                alone.setdefault(budget.key, (budget, []))[1].append(pod)
    return alone, several


def _selected(preflight: Preflight) -> Counter[str]:
    """Count the pods that each budget selects, wherever they are: used where its status lacks the number."""
    return Counter(
        budget.key for pod in preflight.world.pods if not pod.finished for budget in preflight.budgets_of(pod)
    )


def _never(budget: PodDisruptionBudget, name: str, why: str, severity: Severity) -> Finding:
    return Finding(
        code=Code.PDB_NEVER_ALLOWS,
        severity=severity,
        object=f"pdb {name}",
        message=f"{why}: it never allows a disruption, its pods never leave an old node",
        fix=f"kubectl -n {budget.namespace} edit pdb {budget.name}: maxUnavailable 1, or one replica more than "
        "minAvailable",
    )


def _on_failing(budget: PodDisruptionBudget, name: str, failing: list[Pod], severity: Severity) -> Finding:
    return Finding(
        code=Code.PDB_ON_FAILING_PODS,
        severity=severity,
        object=f"pdb {name}",
        message=f"{failing[0].key} is not Ready{_more(failing)}, {budget.current_healthy} of {budget.desired_healthy} "
        "wanted pods are healthy: the budget (IfHealthyBudget) keeps failing pods from being evicted",
        fix=f"mend the pods, or set unhealthyPodEvictionPolicy AlwaysAllow on pdb {budget.name}",
    )


def _none_now(budget: PodDisruptionBudget, name: str, pods: list[Pod]) -> Finding:
    return Finding(
        code=Code.PDB_ALLOWS_NONE_NOW,
        severity=Severity.WARNING,
        object=f"pdb {name}",
        message=f"allows no disruption now ({budget.current_healthy} healthy, {budget.desired_healthy} wanted): "
        f"{pods[0].key}{_more(pods)} would wait",
        fix=f"wait until all its pods are healthy: kubectl -n {budget.namespace} get pdb {budget.name}",
    )


def _several(names: tuple[str, ...], pods: list[Pod], severity: Severity) -> Finding:
    return Finding(
        code=Code.SEVERAL_PDBS,
        severity=severity,
        object=f"pod {pods[0].key}",
        message=f"selected by several PodDisruptionBudgets ({', '.join(names)}){_more(pods)}: the Eviction API refuses "
        "such a pod whatever they allow",
        fix="narrow the selectors until one budget selects each pod",
    )


def _more(pods: list[Pod]) -> str:
    return f" (and {len(pods) - 1} more)" if len(pods) > 1 else ""
