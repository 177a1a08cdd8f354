"""Plan of an evacuation: which nodes of a zone leave now, which wait, and which stay with the pods that hold them.

Pure: the minute reconciler carries it out, `leeward zone evacuate` prints it. Each node leaves through the ordinary
termination with a replacement in another zone first, so a node whose group has no other zone stays."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from leeward.budgets.disruption_budgets import allowance_among, tightest, why_disrupted
from leeward.budgets.pdb import Forbids, PdbIndex, refusal
from leeward.cluster.facets import known_or
from leeward.cluster.state import ClusterState
from leeward.model.group import Group
from leeward.model.node import Node
from leeward.model.node_owners import foreign
from leeward.model.pod import Pod
from leeward.model.subnet import Subnet
from leeward.model.termination import Outcome, Status, TerminationRecord
from leeward.model.times import format_instant
from leeward.placement.replacement import leaving_pods
from leeward.placement.restrictions import of_claimed, of_pod
from leeward.policy.document import DrainPolicy, NodePolicy

TRIED_AGAIN = timedelta(minutes=10)  # after a node was returned to service
Volumes = Mapping[str, Mapping[str, Any]]  # raw PersistentVolumes by the claim, `placement.restrictions.by_claim`
MOST_NAMED = 5  # zones in a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckPod:
    """Pod that cannot leave, `namespace/name`. `volume`: id of the volume that holds it, empty if none does."""

    pod: str
    reason: str
    volume: str = ""


class EvacuationStanding(StrEnum):
    """Standing of a node of the zone. `leaves`: it may be terminated now; `leaving`: its termination is under way."""

    LEAVES = "leaves"
    LEAVING = "leaving"
    WAITS = "waits"
    STAYS = "stays"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """Verdict on one node of the zone. `pods`: those that hold it."""

    node: Node
    group: str
    standing: EvacuationStanding
    reason: str
    pods: tuple[StuckPod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationInputs:
    """Cluster as it is."""

    state: ClusterState
    pods: Mapping[str, Sequence[Pod]]  # by node
    subnets: Mapping[str, Subnet]  # by id, those of the groups at least
    now: datetime
    volumes: Volumes = field(default_factory=dict)  # by claim
    records: Mapping[str, TerminationRecord] = field(default_factory=dict)  # of the zone, open and closed, by instance
    closed: frozenset[str] = frozenset()  # zones in which nothing may land
    budgets: PdbIndex = field(default_factory=lambda: PdbIndex(()))
    balancing: frozenset[str] = frozenset()  # would launch into the zone: their AZRebalance could not be suspended

    def places(self, group: Group, zone: str) -> tuple[Subnet, ...]:
        """Return the subnets in which a replacement of the group may land while the zone is closed."""
        known = (self.subnets[name] for name in group.subnets if name in self.subnets)
        return tuple(subnet for subnet in known if subnet.zone not in {zone, *self.closed})


def plan_evacuation(inputs: EvacuationInputs, zone: str, groups: Collection[str] = ()) -> tuple[NodeVerdict, ...]:
    """Return a verdict on each node of the zone, by name. `groups`: only their nodes; empty: all. Nodes that leave are
    as many as the disruption budgets allow at the same time.
    """
    state = inputs.state
    nodes = sorted((node for node in state.nodes if state.zone_of(node) == zone), key=lambda node: node.name)
    verdicts: list[NodeVerdict] = []
    for node in nodes:
        group = state.group_of(node)
        if groups and (group is None or group.name not in groups):
            continue
        verdict = _verdict(inputs, zone, node, group)
        if verdict.standing is EvacuationStanding.LEAVES:
            going = [verdict.node.instance_id for verdict in verdicts if verdict.standing is EvacuationStanding.LEAVES]
            verdict = _within_budgets(inputs, zone, verdict, going)
        verdicts.append(verdict)
    return tuple(verdicts)


def _verdict(inputs: EvacuationInputs, zone: str, node: Node, group: Group | None) -> NodeVerdict:
    state, policy = inputs.state, inputs.state.policy_of(group)
    base = NodeVerdict(node=node, group=group.name if group else "", standing=EvacuationStanding.STAYS, reason="")
    if group is None or policy is None:
        return replace(base, reason=_why_not_ours(node, group))
    record = inputs.records.get(node.instance_id)
    under_way = record is not None and record.status is Status.OPEN
    if under_way or node.instance_id in known_or(state.claims, frozenset()):
        return replace(base, standing=EvacuationStanding.LEAVING, reason="its termination is under way")
    reason, pods = _why_held(inputs, zone, node, group, policy)
    if reason:
        return replace(base, reason=reason, pods=pods)
    balances = "AZRebalance of its group could not be suspended yet" if group.name in inputs.balancing else ""
    waits = state.policies.pauses.voluntary(group.name) or balances or _why_not_yet(record, inputs.now)
    if waits:
        return replace(base, standing=EvacuationStanding.WAITS, reason=waits)
    return replace(base, standing=EvacuationStanding.LEAVES, reason="its replacement is launched in another zone first")


def _why_not_ours(node: Node, group: Group | None) -> str:
    other = foreign(node) or "no Auto Scaling group holds its instance"
    return other if group is None else f"no policy selects its group {group.name}"


def _why_held(
    inputs: EvacuationInputs, zone: str, node: Node, group: Group, policy: NodePolicy
) -> tuple[str, tuple[StuckPod, ...]]:
    """Return why the node stays, and the pods that hold it; an empty reason: nothing holds it."""
    on_node = inputs.pods.get(node.name, ())
    if reason := foreign(node):
        return reason, ()
    if reason := _why_no_place(inputs, zone, group):
        movable = stuck_pods(on_node, inputs.volumes, ())
        return reason, tuple(stuck if stuck.volume else replace(stuck, reason=reason) for stuck in movable)
    places = inputs.places(group, zone)
    held = (
        *stuck_pods(on_node, inputs.volumes, places),
        *refused_pods(on_node, policy.drain),
        *never_evicted(on_node, policy.drain, inputs.budgets),
    )
    return (f"pod {held[0].pod} cannot leave: {held[0].reason}" if held else ""), held


def _why_no_place(inputs: EvacuationInputs, zone: str, group: Group) -> str:
    if not inputs.places(group, zone):
        return f"its group {group.name} has no subnet in another zone that is open"
    if group.nodegroup and group.desired >= group.maximum:
        return f"its managed node group is at its MaxSize of {group.maximum}, which EKS owns"
    if group.capacity_units:
        return f"its group {group.name} launches no replacement first: {group.capacity_units}"
    return "launches of its group are suspended" if "Launch" in group.suspended else ""


def _why_not_yet(record: TerminationRecord | None, now: datetime) -> str:
    """Return why a node that was returned to service is not asked again yet, empty if it may be."""
    if record is None or record.outcome is not Outcome.RETURNED_TO_SERVICE:
        return ""
    again = record.times.get("closed", now) + TRIED_AGAIN
    if now >= again:
        return ""
    return f"{record.failure or 'it was returned to service'}; tried again at {format_instant(again)}"


def _within_budgets(inputs: EvacuationInputs, zone: str, verdict: NodeVerdict, going: Collection[str]) -> NodeVerdict:
    """Return the verdict, waiting where a disruption budget of its policy is used up. `going`: instances that leave in
    this plan already.
    """
    policy = inputs.state.policy_of_node(verdict.node)
    left = _left(inputs, zone, policy, going, verdict.node) if policy is not None else None
    if policy is None or left is None or left > 0:
        return verdict
    reason = f"the disruption budgets of policy {policy.name} allow no more nodes now"
    return replace(verdict, standing=EvacuationStanding.WAITS, reason=reason)


def _left(inputs: EvacuationInputs, zone: str, policy: NodePolicy, going: Collection[str], node: Node) -> int | None:
    """Return how many more nodes the budgets allow. A NotReady node of the zone that is not terminating does not count:
    the zone is evacuated because of such nodes, and they would hold each other.
    """
    state = inputs.state
    claimed = known_or(state.claims, frozenset()) | {
        name for name, record in inputs.records.items() if record.status is Status.OPEN
    }
    mine = [node for node in state.nodes if state.policy_of_node(node) is policy]

    def counts(one: Node) -> bool:
        if one.instance_id in claimed or one.instance_id in going:
            return True
        own = state.zone_of(one) == zone and not one.ready and not one.tainted and not one.deleting
        return one.name != node.name and not own and bool(why_disrupted(one, inputs.now))

    return tightest(
        allowance_among(
            policy.disruption.budgets,
            [state.zone_of(own) for own in mine],
            [state.zone_of(own) for own in mine if counts(own)],
            reason=None,
            zone=where,
            now=inputs.now,
        )
        for where in (None, zone)
    )


def stuck_pods(pods: Iterable[Pod], volumes: Volumes, places: Collection[Subnet]) -> tuple[StuckPod, ...]:
    """Return the pods of a node that have no place in these subnets, by name. Pods that end with their node (static
    ones, those of DaemonSets) are none of them.
    """
    movable = leaving_pods(tuple(pods))
    found = (_stuck(pod, volumes, places) for pod in sorted(movable, key=lambda pod: pod.key))
    return tuple(pod for pod in found if pod is not None)


def refused_pods(pods: Iterable[Pod], policy: DrainPolicy) -> tuple[StuckPod, ...]:
    """Return the pods that a drain by this policy refuses to evict, by name."""
    found: list[StuckPod] = []
    for pod in sorted(leaving_pods(tuple(pods)), key=lambda pod: pod.key):
        if not pod.evictable or pod.safe_to_evict:
            continue
        if not policy.evict_unmanaged and pod.owner is None:
            reason = "it has no controller: nothing would start it again (drain.unmanagedPods)"
            found.append(StuckPod(pod=pod.key, reason=reason))
        elif not policy.delete_local_data and pod.empty_dir:
            found.append(StuckPod(pod=pod.key, reason="it keeps data in an emptyDir (drain.localData)"))
    return tuple(found)


def never_evicted(pods: Iterable[Pod], policy: DrainPolicy, index: PdbIndex) -> tuple[StuckPod, ...]:
    """Return the pods whose PodDisruptionBudgets never allow an eviction, by name: no drain would end. None
    where the policy deletes pods in the end, or gives a lone one a second replica first.
    """
    if policy.force or policy.termination_grace_period is not None or policy.surge_single_replicas:
        return ()
    found: list[StuckPod] = []
    for pod in sorted(leaving_pods(tuple(pods)), key=lambda pod: pod.key):
        refused = refusal(pod, index.selecting(pod)) if pod.evictable else None
        if refused is not None and refused.why in {Forbids.NEVER, Forbids.SYNC_FAILED, Forbids.SEVERAL}:
            found.append(StuckPod(pod=pod.key, reason=refused.sentence))
    return tuple(found)


def _stuck(pod: Pod, volumes: Volumes, places: Collection[Subnet]) -> StuckPod | None:
    for claim in pod.claims:
        volume = volumes.get(f"{pod.namespace}/{claim}")
        if volume is None:
            continue
        if (volume.get("spec") or {}).get("local") is not None:
            return StuckPod(pod=pod.key, reason="its local volume is on the node", volume=volume_id(volume))
        restrictions = of_claimed(pod, {f"{pod.namespace}/{claim}": volume})
        if restrictions and not any(all(restriction.allows(place) for restriction in restrictions) for place in places):
            return StuckPod(pod=pod.key, reason="its volume is bound to the zone", volume=volume_id(volume))
    if pod.beyond_limit:
        return StuckPod(pod=pod.key, reason=f"it has {pod.beyond_limit}, so that no place for it can be found")
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": pod.node_terms}}
    own = of_pod(pod.key, {"nodeSelector": pod.node_selector, "affinity": {"nodeAffinity": terms}})
    both = (*own, *of_claimed(pod, volumes))
    if any(all(restriction.allows(place) for restriction in both) for place in places):
        return None
    zones = ", ".join(sorted({place.zone for place in places})[:MOST_NAMED]) or "another zone"
    why = " and ".join(
        restriction.source for restriction in both if not any(restriction.allows(place) for place in places)
    )
    return StuckPod(pod=pod.key, reason=f"not allowed in {zones} by {why or 'its restrictions together'}")


def volume_id(volume: Mapping[str, Any]) -> str:
    """Return the id of a raw PersistentVolume as its driver knows it (`vol-…` of EBS), else its name."""
    spec = volume.get("spec") or {}
    handle = (spec.get("csi") or {}).get("volumeHandle") or (spec.get("awsElasticBlockStore") or {}).get("volumeID")
    return str(handle or volume["metadata"]["name"]).rpartition("/")[2]
