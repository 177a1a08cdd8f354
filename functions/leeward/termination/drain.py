"""Which pods leave a node, in which wave and how, which stay, and which forbid the drain.

Decides for one moment and does nothing. The rules are kubectl drain's filters, with Karpenter's waves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.policy.document import DrainPolicy

STUCK_AFTER = timedelta(seconds=60)  # past its deletion deadline: the kubelet is not answering (Karpenter: 1 min)
PENDING = "Pending"


class How(StrEnum):
    """`evict` asks every PodDisruptionBudget, `delete` none."""

    EVICT = "evict"
    DELETE = "delete"


class Tier(IntEnum):
    """Groups that leave one after the other (Karpenter's order of termination)."""

    OTHER = 0
    OTHER_DAEMON = 1
    CRITICAL = 2
    CRITICAL_DAEMON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """kubectl's flags for one call. None: as the policy says."""

    evict_unmanaged: bool | None = None
    delete_local_data: bool | None = None
    ignore_daemon_sets: bool = True
    disable_eviction: bool = False
    grace_seconds: int | None = None
    skip_wait_for_delete: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """A pod that has to go. `grace_seconds` None: the pod's own. `blocked_by` as people read it: `pdb ns/name`."""

    pod: Pod
    wave: int
    how: How
    grace_seconds: int | None = None
    blocked_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPod:
    """A pod that may stay on a drained node."""

    pod: Pod
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPod:
    """A pod that the policy or a flag protects: the drain cannot end while it is there."""

    pod: Pod
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """The verdict over all pods of a node at one moment."""

    node: Node
    deadline: datetime | None
    evict: tuple[Eviction, ...] = ()
    leave: tuple[LeftPod, ...] = ()
    refuse: tuple[RefusedPod, ...] = ()

    @property
    def drained(self) -> bool:
        """Nothing is left that would have to go."""
        return not self.evict and not self.refuse

    @property
    def first_wave(self) -> tuple[Eviction, ...]:
        """Those whose turn it is: a wave starts when the one before is gone."""
        return tuple(eviction for eviction in self.evict if eviction.wave == 0)


def plan_drain(
    *,
    node: Node,
    pods: Sequence[Pod],
    budgets: Sequence[PodDisruptionBudget],
    daemon_sets: frozenset[str],
    policy: DrainPolicy,
    now: datetime,
    deadline: datetime | None = None,
    options: DrainOptions = DrainOptions(),
) -> DrainPlan:
    """Sort the node's pods into those that leave, may stay, or forbid the drain.

    `daemon_sets`: `namespace/name` of every DaemonSet that exists. `deadline`: when the node goes whatever happens;
    where the policy forces or sets a terminationGracePeriod, a pod is deleted at (deadline - its own grace).
    """
    leave: list[LeftPod] = []
    refuse: list[RefusedPod] = []
    going: list[Pod] = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        stays = _why_left(pod, daemon_sets, now, options)
        forbids = None if stays else _why_refused(pod, daemon_sets, policy, options)
        if stays:
            leave.append(LeftPod(pod=pod, why=stays))
        elif forbids:
            refuse.append(RefusedPod(pod=pod, why=forbids))
        else:
            going.append(pod)
    tiers = sorted({_tier(pod) for pod in going})
    evictions = [_eviction(pod, tiers.index(_tier(pod)), budgets, policy, now, deadline, options) for pod in going]
    return DrainPlan(
        node=node,
        deadline=deadline,
        evict=tuple(sorted(evictions, key=lambda eviction: (eviction.wave, eviction.pod.key))),
        leave=tuple(leave),
        refuse=tuple(refuse),
    )


def last_calls(plan: DrainPlan, policy: DrainPolicy) -> tuple[datetime, ...]:
    """When each pod still there would be deleted instead of evicted: (deadline - its own grace), where it may be."""
    if plan.deadline is None or not _may_delete(policy):
        return ()
    return tuple(plan.deadline - timedelta(seconds=eviction.pod.grace_seconds) for eviction in plan.evict)


def blocking_budgets(pod: Pod, budgets: Sequence[PodDisruptionBudget]) -> tuple[str, ...]:
    """`pdb ns/name` of each budget that forbids evicting the pod now.

    The Eviction API never asks a budget about pods that are pending, finished or already being deleted; it refuses
    a pod that several budgets select, whatever they allow; an unready pod passes when its budget says AlwaysAllow,
    or has as many healthy pods as it wants (policy/v1, unhealthyPodEvictionPolicy).
    """
    if pod.finished or pod.phase == PENDING or pod.deletion:
        return ()
    selecting = [budget for budget in budgets if budget.selects(pod)]
    if len(selecting) > 1:
        return tuple(sorted(f"pdb {budget.namespace}/{budget.name}" for budget in selecting))
    return tuple(f"pdb {budget.namespace}/{budget.name}" for budget in selecting if _forbids(budget, pod))


def _forbids(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.disruptions_allowed > 0:
        return False
    enough_without = budget.current_healthy >= budget.desired_healthy > 0
    return pod.ready or not (budget.always_allow_unhealthy or enough_without)


def _of_daemon_set(pod: Pod) -> bool:
    return pod.owner is not None and pod.owner.kind == "DaemonSet" and pod.owner.api_version == "apps/v1"


def _daemon_set_exists(pod: Pod, daemon_sets: frozenset[str]) -> bool:
    return pod.owner is not None and f"{pod.namespace}/{pod.owner.name}" in daemon_sets


def _why_left(pod: Pod, daemon_sets: frozenset[str], now: datetime, options: DrainOptions) -> str | None:
    if pod.mirror:
        return "static pod: it belongs to the kubelet and ends with the node"
    stuck_after = STUCK_AFTER if options.skip_wait_for_delete is None else options.skip_wait_for_delete
    if pod.deletion and now - pod.deletion > stuck_after:
        return f"deleted, and {int((now - pod.deletion).total_seconds())} s past its grace: it is not waited for"
    if pod.finished or not _of_daemon_set(pod) or not _daemon_set_exists(pod, daemon_sets):
        return None
    return "pod of a DaemonSet: it ends with the node" if options.ignore_daemon_sets else None


def _why_refused(pod: Pod, daemon_sets: frozenset[str], policy: DrainPolicy, options: DrainOptions) -> str | None:
    if pod.finished:
        return None
    if _of_daemon_set(pod) and _daemon_set_exists(pod, daemon_sets):
        return "pod of a DaemonSet, which would start it again at once"
    evict_unmanaged = policy.evict_unmanaged if options.evict_unmanaged is None else options.evict_unmanaged
    if not evict_unmanaged and (pod.owner is None or _of_daemon_set(pod)):
        what = "no controller" if pod.owner is None else f"its DaemonSet {pod.owner.name} does not exist"
        return f"{what}: nothing would start it again"
    delete_local = policy.delete_local_data if options.delete_local_data is None else options.delete_local_data
    if pod.empty_dir and not delete_local:
        return "it keeps data in an emptyDir, which would be lost"
    return None


def _may_delete(policy: DrainPolicy) -> bool:
    return policy.force or policy.termination_grace_period is not None


def _tier(pod: Pod) -> Tier:
    if pod.critical:
        return Tier.CRITICAL_DAEMON if _of_daemon_set(pod) else Tier.CRITICAL
    return Tier.OTHER_DAEMON if _of_daemon_set(pod) else Tier.OTHER


def _eviction(
    pod: Pod,
    wave: int,
    budgets: Sequence[PodDisruptionBudget],
    policy: DrainPolicy,
    now: datetime,
    deadline: datetime | None,
    options: DrainOptions,
) -> Eviction:
    due = _may_delete(policy) and deadline is not None and now >= deadline - timedelta(seconds=pod.grace_seconds)
    delete = options.disable_eviction or due
    return Eviction(
        pod=pod,
        wave=wave,
        how=How.DELETE if delete else How.EVICT,
        grace_seconds=options.grace_seconds,
        blocked_by=() if delete else blocking_budgets(pod, budgets),
    )
