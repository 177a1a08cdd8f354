"""Pods that get a second replica before they leave (`drain.singleReplicas: surge`), known before a drain begins.

Pure. Offline, a lone pod is found from the pods alone. Live, `replica_surge.surged` reads its Deployment as well, which
a HorizontalPodAutoscaler, the strategy Recreate or a rollout may keep from being scaled."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from leeward.budgets.pdb import Refusal, refusal
from leeward.model.deployment import deployment_named_by
from leeward.model.pod import Pod, PodDisruptionBudget, scaled
from leeward.termination.drain_plan import DrainPlan, Eviction, How


def lone_pods(pods: Iterable[Pod], among: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods that are the only one of their Deployment `among` all known pods, ready and without a volume that
    a second pod elsewhere could not have.
    """
    count = Counter(_workload(pod) for pod in among if not pod.finished)
    return tuple(pod for pod in pods if _may_surge(pod) and count[_workload(pod)] <= 1)


def with_surges(plan: DrainPlan, surged: frozenset[str], budgets: Sequence[PodDisruptionBudget]) -> DrainPlan:
    """Return the plan in which the pods named by `surged` (`namespace/name`) wait for a second replica. Pods that are
    deleted wait for nothing.
    """
    evict = tuple(_surged(one, budgets) if one.pod.key in surged else one for one in plan.evict)
    return replace(plan, evict=evict)


def refusal_beside_second(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> Refusal | None:
    """Return the refusal that forbids evicting a lone pod once a second replica is ready: a budget such as
    `maxUnavailable: 0`, or several budgets. None if nothing forbids it.
    """
    return refusal(pod, [_with_one_more(budget) if budget.selects(pod) else budget for budget in budgets])


def _surged(eviction: Eviction, budgets: Sequence[PodDisruptionBudget]) -> Eviction:
    if eviction.due or eviction.how is How.DELETE:
        return eviction
    return replace(eviction, how=How.SURGE, refusal=refusal_beside_second(eviction.pod, budgets))


def _workload(pod: Pod) -> tuple[str, str | None]:
    return pod.namespace, deployment_named_by(pod)


def _may_surge(pod: Pod) -> bool:
    there = pod.ready and not pod.finished and pod.deletion is None
    return there and not pod.claims and deployment_named_by(pod) is not None


def _with_one_more(budget: PodDisruptionBudget) -> PodDisruptionBudget:
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
