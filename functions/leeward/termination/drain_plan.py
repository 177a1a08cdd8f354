"""Plan of a drain: the pods that leave a node, in which wave and how, those that stay, and those that forbid the drain.

Decides for one moment and has no side effects. The rules are kubectl drain's filters, with Karpenter's waves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from leeward.budgets.pdb import Refusal, refusal
from leeward.model import well_known
from leeward.model.drain_options import BY_POLICY, DrainOptions
from leeward.model.node import Node
from leeward.model.pod import Pod, PodDisruptionBudget
from leeward.policy.document import DrainPolicy

STUCK_AFTER = timedelta(seconds=60)  # past its deletion deadline: the kubelet is not answering (Karpenter: 1 min)
TAINT_EFFECT = "NoSchedule"


class Protection(StrEnum):
    """Protections of a pod that forbid the drain."""

    DAEMON_SET = "daemon-set"
    UNMANAGED = "unmanaged"
    LOCAL_DATA = "local-data"


class How(StrEnum):
    """Ways to remove a pod. `evict` respects every PodDisruptionBudget, `delete` none. `surge` evicts once a second
    replica is ready: it is only planned; a drain under way decides it for each pod (`termination.replica_surge`).
    """

    EVICT = "evict"
    DELETE = "delete"
    SURGE = "surge"


class Tier(IntEnum):
    """Groups of pods that leave one after the other (Karpenter's order of termination)."""

    OTHER = 0
    OTHER_DAEMON = 1
    CRITICAL = 2
    CRITICAL_DAEMON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """Pod that has to leave. `grace_seconds` None: the pod's own. `last_call`: when it is deleted whatever blocks it,
    None if never. `due`: that moment has come, so it leaves whatever its wave. `refusal`: the reason that forbids the
    eviction now.
    """

    pod: Pod
    wave: int
    how: How
    grace_seconds: int | None = None
    last_call: datetime | None = None
    due: bool = False
    refusal: Refusal | None = None

    @property
    def blocked_by(self) -> tuple[str, ...]:
        """Budgets that block it, as people write them: `pdb ns/name`."""
        return self.refusal.named if self.refusal else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftPod:
    """Pod that may stay on a drained node."""

    pod: Pod
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPod:
    """Pod that the policy or a flag protects: the drain cannot end while it is there."""

    pod: Pod
    what: Protection
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainPlan:
    """Verdict over all pods of a node at one moment."""

    node: Node
    deadline: datetime | None
    evict: tuple[Eviction, ...] = ()
    leave: tuple[LeftPod, ...] = ()
    refuse: tuple[RefusedPod, ...] = ()

    @property
    def drained(self) -> bool:
        """True if no pod is left that has to leave."""
        return not self.evict and not self.refuse

    @property
    def turn(self) -> tuple[Eviction, ...]:
        """Evictions to make now: a wave starts when the one before is gone, a last call waits for none."""
        return tuple(eviction for eviction in self.evict if eviction.wave == 0 or eviction.due)


def plan_drain(
    *,
    node: Node,
    pods: Sequence[Pod],
    budgets: Sequence[PodDisruptionBudget],
    daemon_sets: frozenset[str],
    policy: DrainPolicy,
    now: datetime,
    deadline: datetime | None = None,
    options: DrainOptions = BY_POLICY,
) -> DrainPlan:
    """Sort the node's pods into those that leave, may stay, or forbid the drain.

    `daemon_sets`: `namespace/name` of every DaemonSet that exists. `deadline`: when the node terminates whatever
    happens. If the policy forces, or the policy or the options set a deadline, a pod is deleted at (deadline - its own
    grace).
    """
    leave: list[LeftPod] = []
    refuse: list[RefusedPod] = []
    going: list[Pod] = []
    for pod in sorted(pods, key=lambda pod: pod.key):
        stays = _why_left(pod, daemon_sets, now, options)
        forbids = None if stays else _refused(pod, daemon_sets, policy, options)
        if stays:
            leave.append(LeftPod(pod=pod, why=stays))
        elif forbids:
            refuse.append(forbids)
        elif comes_back(pod, node):
            leave.append(
                LeftPod(pod=pod, why=f"it tolerates the taint {well_known.DISRUPTED_TAINT}: it ends with the node")
            )
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


def last_calls(plan: DrainPlan) -> tuple[datetime, ...]:
    """Return when each pod still there is deleted instead of evicted, if it may be: (deadline - its own grace)."""
    return tuple(eviction.last_call for eviction in plan.evict if eviction.last_call is not None)


def last_call(
    pod: Pod, deadline: datetime | None, policy: DrainPolicy, options: DrainOptions = BY_POLICY
) -> datetime | None:
    """Return when the pod is deleted, whatever blocks its eviction, so that it gets all of its grace before the node
    terminates (Karpenter's terminationGracePeriod). None: no deadline, or neither policy nor options let a pod be
    deleted.
    """
    deletes = policy.force or policy.termination_grace_period is not None or options.deadline is not None
    if deadline is None or not deletes:
        return None
    return deadline - timedelta(seconds=_grace(pod, options))


def comes_back(pod: Pod, node: Node) -> bool:
    """Return whether the pod tolerates the taint of a node under termination and has a controller. Evicted, it might be
    back at once, so it is left, as Karpenter does with pods that tolerate its own taint. Finished pods and pods that no
    controller starts again, an orphan of a DaemonSet among them, do not come back.
    """
    if pod.finished or pod.owner is None or pod.of_daemon_set:
        return False
    value = next((taint.value for taint in node.taints if taint.key == well_known.DISRUPTED_TAINT), "")
    return pod.tolerates(well_known.DISRUPTED_TAINT, value, TAINT_EFFECT)


def _daemon_set_exists(pod: Pod, daemon_sets: frozenset[str]) -> bool:
    return pod.owner is not None and f"{pod.namespace}/{pod.owner.name}" in daemon_sets


def _why_left(pod: Pod, daemon_sets: frozenset[str], now: datetime, options: DrainOptions) -> str | None:
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
        why = "pod of a DaemonSet, which would start it again at once"
        return RefusedPod(pod=pod, what=Protection.DAEMON_SET, why=why)
    evict_unmanaged = policy.evict_unmanaged if options.evict_unmanaged is None else options.evict_unmanaged
    if not evict_unmanaged and (pod.owner is None or pod.of_daemon_set):
        what = "no controller" if pod.owner is None else f"its DaemonSet {pod.owner.name} does not exist"
        return RefusedPod(pod=pod, what=Protection.UNMANAGED, why=f"{what}: nothing would start it again")
    delete_local = policy.delete_local_data if options.delete_local_data is None else options.delete_local_data
    if pod.empty_dir and not delete_local:
        why = "it keeps data in an emptyDir, which would be lost"
        return RefusedPod(pod=pod, what=Protection.LOCAL_DATA, why=why)
    return None


def _tier(pod: Pod) -> Tier:
    if pod.critical:
        return Tier.CRITICAL_DAEMON if pod.of_daemon_set else Tier.CRITICAL
    return Tier.OTHER_DAEMON if pod.of_daemon_set else Tier.OTHER


def _eviction(
    pod: Pod,
    wave: int,
    budgets: Sequence[PodDisruptionBudget],
    policy: DrainPolicy,
    now: datetime,
    deadline: datetime | None,
    options: DrainOptions,
) -> Eviction:
    call = last_call(pod, deadline, policy, options)
    due = call is not None and now >= call
    delete = options.disable_eviction or due
    return Eviction(
        pod=pod,
        wave=wave,
        how=How.DELETE if delete else How.EVICT,
        grace_seconds=_shortened(pod, deadline, now, options) if due else options.grace_seconds,
        last_call=call,
        due=due,
        refusal=None if delete else refusal(pod, budgets),
    )


def _grace(pod: Pod, options: DrainOptions) -> int:
    return pod.grace_seconds if options.grace_seconds is None else options.grace_seconds


def _shortened(pod: Pod, deadline: datetime | None, now: datetime, options: DrainOptions) -> int | None:
    """Return the seconds until the node terminates, at least one (Karpenter), if the pod's grace would exceed them."""
    left = max(int((deadline - now).total_seconds()), 1) if deadline else None
    return left if left is not None and left < _grace(pod, options) else options.grace_seconds
