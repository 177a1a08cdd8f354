"""Counts of the nodes that budgets cover, and of those that are being disrupted.

Source: Karpenter, pkg/controllers/disruption (BuildDisruptionBudgetMapping): NotReady and deleting nodes are
subtracted; nodes whose instance is already ending are not in the total. Cluster Autoscaler's taint counts too."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from leeward.budgets.disruption_budgets import allowance_among, why_disrupted
from leeward.model.lifecycle import ENDING, IN_WORK, TERMINATE_WAIT, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of
from leeward.policy.document import NodePolicy, Reason
from leeward.policy.schedule import any_active
from leeward.snapshot.cluster import ClusterSnapshot

NOT_IN_SERVICE = frozenset({LifecycleRole.LAUNCHING, LifecycleRole.ENDED, LifecycleRole.STANDBY})


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedNode:
    """One node that budgets count."""

    node: str
    zone: str
    disrupting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Number of further nodes of a policy that may be disrupted for a reason."""

    policy: str
    reason: Reason
    zone: str | None  # None: in all zones together
    allowed: int | None  # None: no budget limits it
    disrupting: int
    total: int
    frozen: bool = False  # a freeze is active


def counted(snapshot: ClusterSnapshot, policy: NodePolicy) -> tuple[CountedNode, ...]:
    """Return the nodes of the policy's groups. Instances that have not joined, that are already ending or that their
    owner has put into Standby are in neither number; a tainted node that a terminate hook holds is still being drained
    and counts. A node whose termination an upgrade or a run has requested counts before it carries the taint.
    """
    return tuple(
        CountedNode(
            node=node.name,
            zone=snapshot.zone_of(node),
            disrupting=_is_disrupted(snapshot, node),
        )
        for node in snapshot.nodes
        if snapshot.policy_of_node(node) is policy and not _passing(snapshot, node)
    )


def _is_disrupted(snapshot: ClusterSnapshot, node: Node) -> bool:
    """Return whether the node is disrupted, or about to be: its termination is requested, or its group replaces its
    root volume, which reboots it.
    """
    group = snapshot.group_of(node)
    in_work = group is not None and role_of(group.lifecycle_of(node.instance_id)) in IN_WORK
    return in_work or node.instance_id in snapshot.terminating or bool(why_disrupted(node, snapshot.now))


def _passing(snapshot: ClusterSnapshot, node: Node) -> bool:
    """Return whether the node's instance is coming up, ending, or not in service."""
    instance, group = snapshot.instance_of(node), snapshot.group_of(node)
    lifecycle = group.lifecycle_of(node.instance_id) if group else None
    if (instance is not None and instance.ended) or role_of(lifecycle) in NOT_IN_SERVICE:
        return True
    tainted = bool(disruption_taint_of(node, snapshot.now))
    return role_of(lifecycle) in ENDING and not (lifecycle == TERMINATE_WAIT and tainted)


def allowances(snapshot: ClusterSnapshot, policy: NodePolicy) -> tuple[Allowance, ...]:
    """Return the allowances of every reason: for all zones together, then for each zone that a budget names."""
    nodes = counted(snapshot, policy)
    zones = sorted({budget.zone for budget in policy.disruption.budgets if budget.zone})
    frozen = any_active(snapshot.policies.settings.freeze, snapshot.now)
    return tuple(
        _allowance(policy, reason, zone, nodes, snapshot.now, frozen=frozen)
        for reason in Reason
        for zone in (None, *zones)
    )


def all_allowances(snapshot: ClusterSnapshot) -> tuple[Allowance, ...]:
    """Return the allowances of every policy, in policy order."""
    return tuple(one for policy in snapshot.policies.policies for one in allowances(snapshot, policy))


def _allowance(
    policy: NodePolicy, reason: Reason, zone: str | None, nodes: Sequence[CountedNode], now: datetime, *, frozen: bool
) -> Allowance:
    zones = [node.zone for node in nodes if zone in {None, node.zone}]
    disrupting = [node.zone for node in nodes if node.disrupting and zone in {None, node.zone}]
    allowed = allowance_among(policy.disruption.budgets, zones, disrupting, reason=reason, zone=zone, now=now)
    return Allowance(
        policy=policy.name,
        reason=reason,
        zone=zone,
        allowed=0 if frozen else allowed,
        disrupting=len(disrupting),
        total=len(zones),
        frozen=frozen,
    )
