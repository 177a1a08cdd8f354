"""Pods that get a second replica before they leave (`drain.singleReplicas: surge`), known before a drain begins.

Pure. Offline, a lone pod is found from the pods alone. Live, `replica_surge.surged` reads its Deployment as well, which
a HorizontalPodAutoscaler, the strategy Recreate or a rollout may keep from being scaled."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from leeward.budgets.pdb import refusal_beside_second
from leeward.model.pod import Pod, PodDisruptionBudget, deployment_named_by
from leeward.termination.drain_plan import DrainPlan, Eviction, PodRemoval


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


def _surged(eviction: Eviction, budgets: Sequence[PodDisruptionBudget]) -> Eviction:
    if eviction.due or eviction.removal is PodRemoval.DELETE:
        return eviction
    return replace(eviction, removal=PodRemoval.SURGE, refusal=refusal_beside_second(eviction.pod, budgets))


def _workload(pod: Pod) -> tuple[str, str | None]:
    return pod.namespace, deployment_named_by(pod)


def _may_surge(pod: Pod) -> bool:
    there = pod.ready and not pod.finished and pod.deletion is None
    return there and not pod.claims and deployment_named_by(pod) is not None
