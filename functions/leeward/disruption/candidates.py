"""Candidates: the nodes that may be disrupted at all, and one sentence for each node that may not.

Decides what holds for every method; each method checks for itself what only it needs. Also calculates the cost by which
candidates are ranked: nodes with fewer pods, pods of lower priority and little remaining lifetime come first.

The lifetime under `disruption.expireAfter` has the spread that `720h±10%` asks for. It follows from a hash of the
instance id, so that every plan, the command line and a later run name the same moment (aws/karpenter-provider-aws#1884:
nodes of one scale-out expire together).

Sources: Karpenter, pkg/controllers/disruption/types.go (NewCandidate, ValidateNodeDisruptable,
ValidatePodsDisruptable); for the cost v0.30's pkg/controllers/deprovisioning (helpers.go, GetPodEvictionCost and
disruptionCost; types.go, the remaining lifetime)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from leeward.budgets.disruption_budgets import why_disrupted
from leeward.budgets.pdb import PdbIndex
from leeward.disruption.balanced import BALANCED, BalancedShare, Totals, totals_of
from leeward.disruption.balanced import disruption_cost as balanced_cost
from leeward.disruption.do_not_disrupt import why_node_stays, why_pod_stays
from leeward.model.group import Group
from leeward.model.instance import CapacityType
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node import Node
from leeward.model.node_owners import foreign
from leeward.model.pod import Pod
from leeward.model.well_known import POD_DELETION_COST
from leeward.policy.document import DisruptionPolicy, DrainPolicy, NodePolicy
from leeward.scheduling.pods import PodSpec
from leeward.snapshot.cluster import ClusterSnapshot

_LARGEST = 2**32 - 1
# Karpenter's GetPodEvictionCost: a deletion cost of 2^27 or a priority of 2^25 counts as much as one ordinary pod.
_DELETION_COST_PER_POD, _PRIORITY_PER_POD = 2**27, 2**25
_MIN_EVICTION_COST, _MAX_EVICTION_COST = -10.0, 10.0


def lifetime(node: Node, rules: DisruptionPolicy) -> timedelta | None:
    """Return the age at which the node expires, None where nodes of the policy do not expire."""
    if rules.expire_after is None or not rules.expire_jitter:
        return rules.expire_after
    return rules.expire_after * (1 + _position(node.instance_id or node.name) * rules.expire_jitter / 100)


def expires(node: Node, rules: DisruptionPolicy) -> datetime | None:
    """Return the moment from which the node is too old, None where it does not expire; the latest possible datetime
    where the sum overflows.
    """
    after = lifetime(node, rules)
    if after is None:
        return None
    try:
        return node.created + after
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def lifetime_left(node: Node, rules: DisruptionPolicy, now: datetime) -> float:
    """Return the fraction of the node's lifetime that is left, from 0 to 1; 1 for a node that does not expire."""
    after = lifetime(node, rules)
    if not after:
        return 1.0
    return min(max((after - (now - node.created)) / after, 0.0), 1.0)


def _position(identifier: str) -> float:
    """Return the node's place in the spread, from -1 (first) to 1 (last), evenly distributed over identifiers."""
    return int.from_bytes(sha256(identifier.encode()).digest()[:4]) / _LARGEST * 2 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Node that may be disrupted."""

    node: Node
    group: Group
    policy: NodePolicy
    zone: str
    type: str
    capacity: CapacityType | None
    price: float | None  # dollars an hour; None: unknown
    pods: tuple[PodSpec, ...]  # that would need another node
    cost: float  # see `disruption_cost`
    workload: str = ""  # the first pod by name that keeps the node from being empty (`workload_on`)
    # Why a PodDisruptionBudget or an opt-out keeps a pod on the node. It is set only where the policy's
    # terminationGracePeriod overrides that for drift and expiration; no other method may disrupt the node.
    blocked_by: str = ""
    share: BalancedShare | None = None  # what the node counts in a score; None where its policy is not Balanced

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.node.name

    @property
    def rank(self) -> tuple[float, int, str]:
        """Sort key, the cheapest to disrupt first; the name makes the order independent of the input's."""
        return self.cost, len(self.pods), self.node.name


def candidates(snapshot: ClusterSnapshot) -> tuple[Mapping[str, Candidate], Mapping[str, str]]:
    """Return the candidates by node name, and the reason by node name for every other node."""
    index = PdbIndex(snapshot.budgets)
    specs: dict[str, list[PodSpec]] = {}
    for spec in snapshot.pod_specs:
        if not spec.stays:
            specs.setdefault(spec.node, []).append(spec)
    totals = _balanced_totals(snapshot, specs)
    candidates_by_name: dict[str, Candidate] = {}
    reasons: dict[str, str] = {}
    for node in sorted(snapshot.nodes, key=lambda node: node.name):
        group, policy = snapshot.group_of(node), snapshot.policy_of_node(node)
        reason, blocked_by = _reason_not_ours(snapshot, node) or _reason_not_now(snapshot, node), ""
        if not reason:
            reason, blocked_by = _why_pods_stay(snapshot, node, index)
            reason = reason or _why_unmovable(specs.get(node.name, ()))
        if reason or group is None or policy is None:
            reasons[node.name] = reason
        else:
            candidate = _candidate(snapshot, node, group, policy, specs.get(node.name, ()))
            share = _share(snapshot, candidate, totals.get(policy.name))
            candidates_by_name[node.name] = replace(candidate, blocked_by=blocked_by, share=share)
    return candidates_by_name, reasons


def _reason_not_ours(snapshot: ClusterSnapshot, node: Node) -> str:
    other_owner = foreign(node)
    if other_owner:
        return other_owner
    group = snapshot.group_of(node)
    if group is None:
        return "no Auto Scaling group holds its instance"
    return "" if snapshot.policy_of(group) is not None else f"no policy selects its group {group.name}"


def _reason_not_now(snapshot: ClusterSnapshot, node: Node) -> str:
    group, policy = snapshot.group_of(node), snapshot.policy_of_node(node)
    if group is None or policy is None:
        return ""
    if paused := snapshot.policies.pauses.voluntary(group.name):
        return paused
    opted_out = f"policy {policy.name} says doNotDisrupt" if policy.disruption.do_not_disrupt else ""
    return (
        why_disrupted(node, snapshot.now)
        or snapshot.why_shifted(snapshot.zone_of(node))
        or _why_leaving(snapshot, node, group)
        or snapshot.blocked_groups.get(group.name, "")
        or opted_out
        or why_node_stays(node)
        or _why_cooling(snapshot, group, policy)
    )


def _why_leaving(snapshot: ClusterSnapshot, node: Node, group: Group) -> str:
    """Return why the instance cannot be terminated now: it is not in service, protected from scale-in, or already being
    terminated; empty otherwise.
    """
    instance = snapshot.instance_of(node)
    if instance is not None and instance.state != "running":
        return f"EC2 says its instance is {instance.state}"
    lifecycle = group.lifecycle_of(node.instance_id) or "nothing of it"
    if lifecycle != IN_SERVICE:
        return f"its group {group.name} says {lifecycle}"
    if group.protects(node.instance_id):
        return f"its instance is protected from scale-in in group {group.name}"
    requested = node.instance_id in snapshot.claimed or node.instance_id in snapshot.terminating
    return "a termination of it is under way" if requested else ""


def _why_cooling(snapshot: ClusterSnapshot, group: Group, policy: NodePolicy) -> str:
    ended = snapshot.last_disruptions.get(group.name)
    if ended is None or snapshot.now - ended >= policy.disruption.cooldown:
        return ""
    seconds_left = int((ended + policy.disruption.cooldown - snapshot.now).total_seconds())
    return f"its group {group.name} is in cooldown after the last run ({seconds_left} s of disruption.cooldown left)"


def _why_pods_stay(snapshot: ClusterSnapshot, node: Node, index: PdbIndex) -> tuple[str, str]:
    """Return (why no method may disrupt the node, why only drift and expiration may), each empty if there is no reason.

    Each names the first pod by name that cannot leave. A terminationGracePeriod overrides opt-outs and
    PodDisruptionBudgets, but not the pods that a drain refuses.
    """
    policy = snapshot.policy_of_node(node)
    drain = policy.drain if policy else DrainPolicy()
    blocked_by = ""
    for pod in sorted(snapshot.pods_on(node.name), key=lambda pod: pod.key):
        stays = why_pod_stays(pod, snapshot.now) or (index.why_blocked(pod) if pod.evictable else "")
        refused = _why_refused(pod, drain) if pod.evictable else ""
        if drain.termination_grace_period is None and stays:
            return stays, ""
        if refused:
            return refused, ""
        blocked_by = blocked_by or stays
    return "", blocked_by


def _why_unmovable(pods: Iterable[PodSpec]) -> str:
    """Return which pod no plan can place because it is beyond the limits of planning, empty where all are within."""
    beyond = (pod for pod in pods if pod.needs.beyond_limit)
    pod = min(beyond, key=lambda pod: pod.key, default=None)
    return "" if pod is None else f"pod {pod.key} counts as unmovable: it has {pod.needs.beyond_limit}"


def _why_refused(pod: Pod, drain: DrainPolicy) -> str:
    """Return why a drain would refuse the pod, empty if it would not; `safe-to-evict: "true"` overrides the policy,
    `safe-to-evict-local-volumes` its localData.
    """
    if pod.safe_to_evict:
        return ""
    if not drain.evict_unmanaged and pod.owner is None:
        return f"pod {pod.key} has no controller: nothing would start it again (drain.unmanagedPods)"
    if not drain.delete_local_data and pod.empty_dir and not pod.disposable:
        return f"pod {pod.key} keeps data in an emptyDir (drain.localData)"
    return ""


def _candidate(
    snapshot: ClusterSnapshot, node: Node, group: Group, policy: NodePolicy, specs: Iterable[PodSpec]
) -> Candidate:
    on_node = snapshot.pods_on(node.name)
    pods = tuple(sorted(specs, key=lambda pod: pod.order))
    remaining = lifetime_left(node, policy.disruption, snapshot.now)
    return Candidate(
        node=node,
        group=group,
        policy=policy,
        zone=snapshot.zone_of(node),
        type=snapshot.type_of(node),
        capacity=snapshot.capacity_of(node),
        price=snapshot.price_of(node),
        pods=pods,
        cost=disruption_cost(pods, {pod.key: pod for pod in on_node}, remaining),
        workload=workload_on(snapshot, node),
    )


def _balanced_totals(snapshot: ClusterSnapshot, specs: Mapping[str, Sequence[PodSpec]]) -> dict[str, Totals]:
    """Return the totals of each policy with `consolidationPolicy: Balanced`, over all of its nodes, by its name."""
    members: dict[str, list[Node]] = {}
    for node in snapshot.nodes:
        policy = snapshot.policy_of_node(node)
        if policy is not None and policy.disruption.consolidation_policy == BALANCED:
            members.setdefault(policy.name, []).append(node)
    found: dict[str, Totals] = {}
    for name, nodes in members.items():
        costs = {node.name: _balanced_cost(snapshot, node.name, specs.get(node.name, ())) for node in nodes}
        found[name] = totals_of({node.name: snapshot.price_of(node) for node in nodes}, costs, name)
    return found


def _share(snapshot: ClusterSnapshot, candidate: Candidate, totals: Totals | None) -> BalancedShare | None:
    if totals is None:
        return None
    cost = _balanced_cost(snapshot, candidate.name, candidate.pods)
    return BalancedShare(price=candidate.price, disruption=cost, totals=totals)


def _balanced_cost(snapshot: ClusterSnapshot, node: str, specs: Iterable[PodSpec]) -> float:
    known = {pod.key: pod for pod in snapshot.pods_on(node)}
    return balanced_cost(eviction_cost(known[pod.key], -pod.order[0]) for pod in specs if pod.key in known)


def workload_on(snapshot: ClusterSnapshot, node: Node) -> str:
    """Return the first pod by name that keeps the node from being empty, empty when none does."""
    return min((pod.key for pod in snapshot.pods_on(node.name) if pod.works), default="")


def eviction_cost(pod: Pod, priority: int) -> float:
    """Return the cost of an eviction, from -10 to 10: 1 for an ordinary pod, more with a priority or deletion cost."""
    cost = 1.0 + _deletion_cost(pod) / _DELETION_COST_PER_POD + priority / _PRIORITY_PER_POD
    return min(max(cost, _MIN_EVICTION_COST), _MAX_EVICTION_COST)


def _deletion_cost(pod: Pod) -> int:
    """Return the annotated deletion cost; a value that is not a whole number counts as 0."""
    try:
        return int(pod.annotations.get(POD_DELETION_COST, "0"))
    except ValueError:
        return 0


def disruption_cost(pods: Iterable[PodSpec], known: Mapping[str, Pod], remaining: float) -> float:
    """Return the cost of moving these pods, in evictions of ordinary pods, times the remaining fraction of the
    lifetime.

    `known`: the same pods by `namespace/name`. `remaining`: as `lifetime_left` returns it.
    """
    return remaining * sum(eviction_cost(known[pod.key], -pod.order[0]) for pod in pods if pod.key in known)
