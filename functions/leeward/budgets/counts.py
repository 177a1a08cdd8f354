"""Counts of the nodes that budgets cover, and of those that are being disrupted.

Source: Karpenter, pkg/controllers/disruption (BuildDisruptionBudgetMapping): NotReady and deleting nodes are
subtracted; nodes whose instance is already ending are not in the total. Cluster Autoscaler's taint counts too."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from leeward.budgets.disruption_budgets import allowance
from leeward.model.group import LEAVING
from leeward.model.node import Node
from leeward.model.node_owners import MARKS, mark_of
from leeward.policy.document import NodePolicy, Reason
from leeward.policy.schedule import any_active
from leeward.snapshot.cluster import ClusterSnapshot

HELD = "Terminating:Wait"
NOT_IN_SERVICE = ("Pending", "Terminated", "Standby", "EnteringStandby")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One node that budgets count."""

    node: str
    zone: str
    disrupting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Number of further nodes of a policy that may be disrupted for a reason; `zone` None: in all zones together.
    `allowed` None: no budget limits it. `frozen`: a freeze is active.
    """

    policy: str
    reason: Reason
    zone: str | None
    allowed: int | None
    disrupting: int
    total: int
    frozen: bool = False


def why_disrupting(node: Node) -> str:
    """Return why the node counts as disrupted already, empty when it does not. A cordon alone does not count: an
    upgrade cordons old nodes that are still waiting to be drained.
    """
    mark = mark_of(node)
    if mark:
        return f"it is on its way out already (taint {mark})"
    if node.deleting:
        return "its Node object is being deleted"
    return "" if node.ready else "it is NotReady"


def counted(snapshot: ClusterSnapshot, policy: NodePolicy) -> tuple[Counted, ...]:
    """Return the nodes of the policy's groups. Instances that have not joined, that are already ending or that their
    owner has put into Standby are in neither number; a tainted node that a terminate hook holds is still being drained
    and counts. A node whose termination an upgrade or a run has requested counts before it carries the taint.
    """
    return tuple(
        Counted(
            node=node.name,
            zone=snapshot.zone_of(node),
            disrupting=node.instance_id in snapshot.going or bool(why_disrupting(node)),
        )
        for node in snapshot.nodes
        if snapshot.policy_of_node(node) is policy and not _passing(snapshot, node)
    )


def _passing(snapshot: ClusterSnapshot, node: Node) -> bool:
    """Return whether the node's instance is coming up, ending, or not in service."""
    instance, group = snapshot.instance_of(node), snapshot.group_of(node)
    lifecycle = (group.lifecycle_of(node.instance_id) if group else None) or ""
    if (instance is not None and instance.ended) or lifecycle.startswith(NOT_IN_SERVICE):
        return True
    marked = any(taint.key in MARKS for taint in node.taints)
    return lifecycle.startswith(LEAVING) and not (lifecycle == HELD and marked)


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
    policy: NodePolicy,
    reason: Reason,
    zone: str | None,
    nodes: Iterable[Counted],
    now: datetime,
    *,
    frozen: bool,
) -> Allowance:
    here = [one for one in nodes if zone in {None, one.zone}]
    disrupting = sum(one.disrupting for one in here)
    found = allowance(
        policy.disruption.budgets, reason=reason, zone=zone, total=len(here), disrupting=disrupting, now=now
    )
    return Allowance(
        policy=policy.name,
        reason=reason,
        zone=zone,
        allowed=0 if frozen else found,
        disrupting=disrupting,
        total=len(here),
        frozen=frozen,
    )
