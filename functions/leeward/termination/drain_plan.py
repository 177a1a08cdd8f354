"""Plan of a drain: the pods that leave a node, those that may stay, and those that forbid the drain.

Decides for one moment in which wave and how each pod is removed, and has no side effects; `eviction` carries the plan
out. The rules are the filters of kubectl drain, with the waves of Karpenter's terminator.

`lone_pods` names pods that get a second replica before they leave (`drain.singleReplicas: surge`), from the pods alone.
Live, `replica_surge.surged` reads the Deployment as well, which a HorizontalPodAutoscaler, the strategy Recreate or a
rollout may keep from being scaled."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from leeward.budgets.pdb import Refusal, refusal, refusal_beside_second
from leeward.model import well_known
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget, deployment_named_by
from leeward.model.termination import BY_POLICY, DrainOptions
from leeward.policy.document import DrainPolicy
from leeward.termination.deadlines import DEADLINE_MARGIN

STUCK_AFTER = timedelta(seconds=60)  # past its deletion deadline a pod's kubelet is down (Karpenter: 1 minute)
TAINT_EFFECT = "NoSchedule"


class Protection(StrEnum):
    """Protections of a pod that forbid the drain."""

    DAEMON_SET = "daemon-set"
    UNMANAGED = "unmanaged"
    LOCAL_DATA = "local-data"


class PodRemoval(StrEnum):
    """Ways to remove a pod.

    `evict` respects every PodDisruptionBudget, `delete` none. `surge` evicts once a second replica is ready; it occurs
    only in a displayed plan, because a drain under way decides it for each pod (`termination.replica_surge`).
    """

    EVICT = "evict"
    DELETE = "delete"
    SURGE = "surge"


class Tier(IntEnum):
    """Groups of pods in the order in which they leave (Karpenter's order of termination)."""

    OTHER = 0
    OTHER_DAEMON = 1
    CRITICAL = 2
    CRITICAL_DAEMON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Pod that has to leave."""

    pod: Pod
    wave: int  # 0 leaves first
    removal: PodRemoval
    grace_seconds: int | None = None  # None: the pod's own
    force_delete_at: datetime | None = None  # when it is deleted whatever blocks it; None: never
    due: bool = False  # that moment has come, so the pod leaves whatever its wave
    refusal: Refusal | None = None  # why the eviction is forbidden now; None: it is allowed, or the pod is deleted

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """PodDisruptionBudgets that block the eviction, as `pdb NAMESPACE/NAME`."""
        return self.refusal.named if self.refusal else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPod:
    """Pod that may stay on a drained node."""

    pod: Pod
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPod:
    """Pod that the policy or a flag protects: the drain cannot end while the pod is on the node."""

    pod: Pod
    protection: Protection
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """Plan for all pods of a node at one moment."""

    node: Node
    deadline: datetime | None  # when the node terminates in any case; None: unknown
    evict: tuple[Eviction, ...] = ()
    leave: tuple[LeftPod, ...] = ()
    refuse: tuple[RefusedPod, ...] = ()
    wave: int = 0  # the last wave that evicts now
    later_waves: tuple[datetime, ...] = ()  # latest begin of each wave after it, whatever the waves before it do

    @property
    def drained(self) -> bool:
        """True if no pod has to leave any more."""
        return not self.evict and not self.refuse

    @property
    def turn(self) -> tuple[Eviction, ...]:
        """Evictions to make now: the waves that have begun, and every pod at its force-delete deadline."""
        return tuple(eviction for eviction in self.evict if eviction.wave <= self.wave or eviction.due)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainTerms:
    """Terms of a drain's plan, at one moment."""

    policy: DrainPolicy
    now: datetime
    deadline: datetime | None = None  # when the node terminates in any case
    options: DrainOptions = BY_POLICY


def plan_drain(
    *,
    node: Node,
    pods: Sequence[Pod],
    budgets: Sequence[PodDisruptionBudget],
    daemon_sets: frozenset[str],
    terms: DrainTerms,
) -> DrainPlan:
    """Return which of the node's pods leave, may stay, or forbid the drain.

    `pods`: pods of the node. `budgets`: PodDisruptionBudgets of the cluster. `daemon_sets`: `namespace/name` of every
    DaemonSet that exists. `force_delete_at` says which pods are deleted at the deadline instead of evicted.
    """
    leave: list[LeftPod] = []
    refuse: list[RefusedPod] = []
    leaving: list[Pod] = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        stays = _reason_to_stay(pod, daemon_sets, terms.now, terms.options)
        refused = None if stays else _refused(pod, daemon_sets, terms.policy, terms.options)
        if stays:
            leave.append(LeftPod(pod=pod, reason=stays))
        elif refused:
            refuse.append(refused)
        elif tolerates_disruption_taint(pod, node):
            reason = f"it tolerates the taint {well_known.DISRUPTED_TAINT}: it ends with the node"
            leave.append(LeftPod(pod=pod, reason=reason))
        else:
            leaving.append(pod)
    tiers = sorted({_tier(pod) for pod in leaving})
    evictions = [_eviction(pod, tiers.index(_tier(pod)), budgets, terms) for pod in leaving]
    plan = DrainPlan(
        node=node,
        deadline=terms.deadline,
        evict=tuple(sorted(evictions, key=lambda eviction: (eviction.wave, eviction.pod.key))),
        leave=tuple(leave),
        refuse=tuple(refuse),
    )
    return in_time_for(terms.deadline, plan, terms.now, terms.options)


def in_time_for(end: datetime | None, plan: DrainPlan, now: datetime, options: DrainOptions = BY_POLICY) -> DrainPlan:
    """Return the plan whose later waves begin in time for the node's deadline, and for this end of its drain."""
    end = min((moment for moment in (plan.deadline, end) if moment is not None), default=None)
    begins = _latest_begins(plan.evict, end, options)
    begun = sum(now >= begin for begin in begins)
    return replace(plan, wave=begun, later_waves=tuple(begins[begun:]))


def turn_times(plan: DrainPlan) -> tuple[datetime, ...]:
    """Return the moments at which more pods of the plan have their turn: force-delete deadlines, and the latest begins
    of later waves.
    """
    deletions = (eviction.force_delete_at for eviction in plan.evict if eviction.force_delete_at is not None)
    return (*deletions, *plan.later_waves)


def _latest_begins(evictions: Sequence[Eviction], deadline: datetime | None, options: DrainOptions) -> list[datetime]:
    """Return the latest begin of each wave but the first, in their order: the longest grace of its own pods and of each
    later wave's has to end before the node does, as the kubelet's graceful shutdown reserves time for critical pods.
    None are known without a deadline: a later wave then waits until the waves before it have left.
    """
    graces: dict[int, int] = {}
    for eviction in evictions:
        graces[eviction.wave] = max(graces.get(eviction.wave, 0), _grace(eviction.pod, options))
    begins: list[datetime] = []
    begin = deadline - DEADLINE_MARGIN if deadline is not None else None
    for wave in sorted(graces, reverse=True):
        if begin is not None and wave > 0:
            begin -= timedelta(seconds=graces[wave])
            begins.append(begin)
    return begins[::-1]


def force_delete_at(
    pod: Pod, deadline: datetime | None, policy: DrainPolicy, options: DrainOptions = BY_POLICY
) -> datetime | None:
    """Return when the pod is deleted whatever blocks its eviction: its whole grace period before the node's deadline,
    as with Karpenter's terminationGracePeriod. None: the node has no deadline, or neither policy nor options allow
    deletion.
    """
    deletes = policy.force or policy.termination_grace_period is not None or options.deadline is not None
    if deadline is None or not deletes:
        return None
    return deadline - timedelta(seconds=_grace(pod, options))


def tolerates_disruption_taint(pod: Pod, node: Node) -> bool:
    """Return whether the pod may be scheduled to the node again after an eviction.

    It tolerates the taint of a node under termination and has a controller that starts it again. Such a pod is left on
    the node, as Karpenter leaves pods that tolerate its own taint. Finished pods, pods without a controller and orphans
    of a DaemonSet are not started again.
    """
    if pod.finished or pod.owner is None or pod.of_daemon_set:
        return False
    value = next((taint.value for taint in node.taints if taint.key == well_known.DISRUPTED_TAINT), "")
    return pod.tolerates(well_known.DISRUPTED_TAINT, value, TAINT_EFFECT)


def _daemon_set_exists(pod: Pod, daemon_sets: frozenset[str]) -> bool:
    return pod.owner is not None and f"{pod.namespace}/{pod.owner.name}" in daemon_sets


def _reason_to_stay(pod: Pod, daemon_sets: frozenset[str], now: datetime, options: DrainOptions) -> str | None:
    if pod.mirror:
        return "static pod: it belongs to the kubelet and ends with the node"
    stuck_after = STUCK_AFTER if options.skip_wait_for_delete is None else options.skip_wait_for_delete
    if pod.deletion and now - pod.deletion > stuck_after:
        return f"deleted, and {int((now - pod.deletion).total_seconds())} s past its grace: it is not waited for"
    if pod.finished or not pod.of_daemon_set or not _daemon_set_exists(pod, daemon_sets):
        return None
    return "pod of a DaemonSet: it ends with the node" if options.ignore_daemon_sets else None


def _refused(pod: Pod, daemon_sets: frozenset[str], policy: DrainPolicy, options: DrainOptions) -> RefusedPod | None:
    if pod.finished or (options.voluntary and pod.safe_to_evict):
        return None
    if pod.of_daemon_set and _daemon_set_exists(pod, daemon_sets):
        reason = "pod of a DaemonSet, which would start it again at once"
        return RefusedPod(pod=pod, protection=Protection.DAEMON_SET, reason=reason)
    evict_unmanaged = policy.evict_unmanaged if options.evict_unmanaged is None else options.evict_unmanaged
    if not evict_unmanaged and (pod.owner is None or pod.of_daemon_set):
        owner = "no controller" if pod.owner is None else f"its DaemonSet {pod.owner.name} does not exist"
        reason = f"{owner}: nothing would start it again"
        return RefusedPod(pod=pod, protection=Protection.UNMANAGED, reason=reason)
    delete_local = policy.delete_local_data if options.delete_local_data is None else options.delete_local_data
    if pod.empty_dir and not delete_local and not (options.voluntary and pod.disposable):
        reason = "it keeps data in an emptyDir, which would be lost"
        return RefusedPod(pod=pod, protection=Protection.LOCAL_DATA, reason=reason)
    return None


def _tier(pod: Pod) -> Tier:
    if pod.critical:
        return Tier.CRITICAL_DAEMON if pod.of_daemon_set else Tier.CRITICAL
    return Tier.OTHER_DAEMON if pod.of_daemon_set else Tier.OTHER


def _eviction(pod: Pod, wave: int, budgets: Sequence[PodDisruptionBudget], terms: DrainTerms) -> Eviction:
    options = terms.options
    force_delete = force_delete_at(pod, terms.deadline, terms.policy, options)
    due = force_delete is not None and terms.now >= force_delete
    delete = options.disable_eviction or due
    return Eviction(
        pod=pod,
        wave=wave,
        removal=PodRemoval.DELETE if delete else PodRemoval.EVICT,
        grace_seconds=_shortened(pod, terms.deadline, terms.now, options) if due else options.grace_seconds,
        force_delete_at=force_delete,
        due=due,
        refusal=None if delete else refusal(pod, budgets),
    )


def _grace(pod: Pod, options: DrainOptions) -> int:
    return pod.grace_seconds if options.grace_seconds is None else options.grace_seconds


def _shortened(pod: Pod, deadline: datetime | None, now: datetime, options: DrainOptions) -> int | None:
    """Return the seconds until the node terminates, at least 1 (Karpenter), if the pod's grace period is longer than
    that; else the grace period of the options.
    """
    left = max(int((deadline - now).total_seconds()), 1) if deadline else None
    return left if left is not None and left < _grace(pod, options) else options.grace_seconds


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
    evict = tuple(_surged(eviction, budgets) if eviction.pod.key in surged else eviction for eviction in plan.evict)
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
