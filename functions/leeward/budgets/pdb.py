"""PodDisruptionBudgets that forbid evicting a pod, and the case in which waiting can help.

Applies the Eviction API's own rules (policy/v1) to the status of the budgets. Calls no API."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from leeward.model.counts import count_of
from leeward.model.pod import Pod, PodDisruptionBudget, scaled
from leeward.model.visible import visible

PENDING = "Pending"
_Labels = tuple[tuple[str, str], ...]


class Forbids(StrEnum):
    """Reasons for which the Eviction API refuses an eviction. Only the first can pass by waiting for other pods."""

    NONE_NOW = "none-now"
    NEVER = "never"  # maxUnavailable 0, or minAvailable as large as the workload
    SEVERAL = "several"  # the API cannot serve a pod that several budgets select
    SYNC_FAILED = "sync-failed"  # the disruption controller cannot compute it: its status allows none
    FAILING_POD = "failing-pod"  # the pod is unready, and only budgets with enough healthy pods allow its eviction


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Reason that forbids the eviction of a pod, and the `budgets` that do, sorted by key."""

    why: Forbids
    budgets: tuple[PodDisruptionBudget, ...]

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the budgets, each as `pdb ns/name`."""
        return tuple(f"pdb {budget.key}" for budget in self.budgets)

    @property
    def sentence(self) -> str:
        """Sentence for people: the budgets, with their numbers where these say something, and whether waiting helps."""
        names = ", ".join(self.named)
        budget = self.budgets[0]
        healthy = f"{budget.current_healthy} healthy of {budget.desired_healthy} wanted"
        match self.why:
            case Forbids.SEVERAL:
                return f"{names} (several select it, which the Eviction API never allows)"
            case Forbids.NEVER:
                return f"{names} ({bound(budget)}: it never allows any)"
            case Forbids.SYNC_FAILED:
                return f"{names} (cannot be computed: {visible(budget.sync_failed)})"
            case Forbids.FAILING_POD:
                return f"{names} (the pod is not ready, {healthy})"
            case Forbids.NONE_NOW if not budget.processed:
                return f"{names} (its change is not processed yet)"
            case Forbids.NONE_NOW:
                return f"{names} (allows 0 now, {healthy})" if budget.desired_healthy else names


def bound(budget: PodDisruptionBudget) -> str:
    """Return `maxUnavailable 0` or `minAvailable 100%`, as the budget states it."""
    if budget.max_unavailable is not None:
        return f"maxUnavailable {budget.max_unavailable}"
    return f"minAvailable {budget.min_available}"


def refusal(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> Refusal | None:
    """Return the refusal that forbids evicting the pod now, or None if nothing forbids it.

    The Eviction API checks no budget for pods that are pending, finished or already being deleted. It refuses a pod
    that several budgets select, whatever they allow. An unready pod passes if its budget says AlwaysAllow or has as
    many healthy pods as it requires (policy/v1, unhealthyPodEvictionPolicy).
    """
    if pod.finished or pod.phase == PENDING or pod.deletion:
        return None
    selecting = sorted((budget for budget in budgets if budget.selects(pod)), key=lambda budget: budget.key)
    if len(selecting) > 1:
        return Refusal(why=Forbids.SEVERAL, budgets=tuple(selecting))
    forbidding = tuple(budget for budget in selecting if _forbids(budget, pod))
    if not forbidding:
        return None
    return Refusal(why=_why(forbidding[0], pod), budgets=forbidding)


def blocking_budgets(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> tuple[str, ...]:
    """Return `pdb ns/name` of each budget that forbids evicting the pod now."""
    refused = refusal(pod, budgets)
    return refused.named if refused else ()


def refusal_beside_second(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> Refusal | None:
    """Return the refusal that forbids evicting a lone pod once a second replica is ready: a budget such as
    `maxUnavailable: 0`, or several budgets. None if nothing forbids it.
    """
    return refusal(pod, [with_one_more(budget) if budget.selects(pod) else budget for budget in budgets])


def with_one_more(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    """Return the budget with the status that the disruption controller writes when one more of its pods is healthy. A
    status that counts no pods counts the lone one.
    """
    expected = max(budget.expected_pods, 1) + 1
    healthy = max(budget.current_healthy, 1) + 1
    desired = budget.desired_healthy
    if budget.max_unavailable is not None:
        desired = max(expected - scaled(budget.max_unavailable, expected), 0)
    elif budget.min_available is not None:
        desired = scaled(budget.min_available, expected)
    return replace(
        budget,
        expected_pods=expected,
        current_healthy=healthy,
        desired_healthy=desired,
        disruptions_allowed=max(healthy - desired, 0),
    )


def why_never(budget: PodDisruptionBudget, expected: int) -> str:
    """Return why the budget allows no eviction however healthy its `expected` pods are, empty when it can allow one."""
    if not replace(budget, expected_pods=expected).never_allows:
        return ""
    if budget.max_unavailable is not None:
        return f"maxUnavailable is {budget.max_unavailable}"
    return f"minAvailable is {budget.min_available} of {count_of(expected, 'pod')}"


def evicts_unready(budget: PodDisruptionBudget) -> bool:
    """Return whether unready pods may be evicted while the budget allows no disruption (policy/v1,
    unhealthyPodEvictionPolicy): AlwaysAllow, or as many healthy pods as the budget requires.
    """
    return budget.always_allow_unhealthy or budget.current_healthy >= budget.desired_healthy > 0


def _why(budget: PodDisruptionBudget, pod: Pod) -> Forbids:
    if budget.sync_failed:
        return Forbids.SYNC_FAILED
    if not pod.ready:
        return Forbids.FAILING_POD
    return Forbids.NEVER if budget.never_allows else Forbids.NONE_NOW


def _forbids(budget: PodDisruptionBudget, pod: Pod) -> bool:
    none = budget.disruptions_allowed <= 0 or not budget.processed
    return none and (pod.ready or not evicts_unready(budget))


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
