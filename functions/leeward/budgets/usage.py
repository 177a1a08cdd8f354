"""Remaining allowance of one run: the budgets of every policy and zone, and how far each group may shrink.

Counts are of the nodes that budgets cover, and of those that are being disrupted. Source: Karpenter,
pkg/controllers/disruption (BuildDisruptionBudgetMapping): NotReady and deleting nodes are subtracted; nodes whose
instance is already ending are not in the total. Cluster Autoscaler's taint counts too."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from leeward.budgets.disruption_budgets import allowance_among, tightest, why_disrupted
from leeward.model.group import Group
from leeward.model.lifecycle import ENDING, IN_SERVICE, IN_WORK, TERMINATE_WAIT, LifecycleRole, role_of
from leeward.model.node import Node
from leeward.model.node_owners import disruption_taint_of
from leeward.policy.document import DisruptionReason, NodePolicy
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
    reason: DisruptionReason
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
        for reason in DisruptionReason
        for zone in (None, *zones)
    )


def all_allowances(snapshot: ClusterSnapshot) -> tuple[Allowance, ...]:
    """Return the allowances of every policy, in policy order."""
    return tuple(one for policy in snapshot.policies.policies for one in allowances(snapshot, policy))


def _allowance(
    policy: NodePolicy,
    reason: DisruptionReason,
    zone: str | None,
    nodes: Sequence[CountedNode],
    now: datetime,
    *,
    frozen: bool,
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


class Disruptable(Protocol):
    """Node that would be disrupted, as far as budgets and sizes look at it."""

    @property
    def policy(self) -> NodePolicy: ...
    @property
    def group(self) -> Group: ...
    @property
    def zone(self) -> str: ...


class BudgetUsage:
    """Budgets and group sizes that are left. `take` and `resize` spend, `copy` allows a trial. A disrupted node counts
    against the budgets of every reason.
    """

    def __init__(self, left: Mapping[tuple[str, str, str | None], int | None], slack: Mapping[str, int]) -> None:
        self._left = dict(left)
        self._slack = dict(slack)

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> Self:
        """Return the usage at the start of a run."""
        left = {(one.policy, one.reason.value, one.zone): one.allowed for one in all_allowances(snapshot)}
        return cls(left, slack(snapshot))

    def copy(self) -> "BudgetUsage":
        """Return a copy for a trial."""
        return BudgetUsage(self._left, self._slack)

    def reason_to_keep(self, node: Disruptable, reason: DisruptionReason) -> str:
        """Return which budget forbids the node now, empty when none does."""
        policy = node.policy.name
        for zone, where in ((None, ""), (node.zone, f" in {node.zone}")):
            left = self._left.get((policy, reason.value, zone))
            if left is not None and left <= 0:
                return f"the budgets of policy {policy} allow no more {reason.value} nodes{where} now"
        return ""

    def left(self, node: Disruptable, reason: DisruptionReason) -> int | None:
        """Return how many nodes like this one may still be disrupted, None without a limit."""
        policy = node.policy.name
        return tightest(self._left.get((policy, reason.value, zone)) for zone in (None, node.zone))

    def take(self, node: Disruptable) -> None:
        """Count the node as disrupted."""
        for key, left in self._left.items():
            if key[0] == node.policy.name and key[2] in {None, node.zone} and left is not None:
                self._left[key] = max(left - 1, 0)

    def reason_not_to_shrink(self, node: Disruptable) -> str:
        """Return why the node's group may not lose a node, empty when it may."""
        if self._slack.get(node.group.name, 0) > 0:
            return ""
        return f"its group {node.group.name} is at its MinSize of {node.group.minimum}"

    def may_shrink(self, nodes: Iterable[Disruptable], grows: str | None = None) -> bool:
        """Return whether the groups may lose all these nodes while the group `grows` gets one back."""
        removed: dict[str, int] = {grows: -1} if grows else {}
        for node in nodes:
            removed[node.group.name] = removed.get(node.group.name, 0) + 1
        return all(count <= 0 or count <= self._slack.get(name, 0) for name, count in removed.items())

    def resize(self, group: str, by: int) -> None:
        """Record that a group loses (-1) or gets (1) a node in this run."""
        self._slack[group] = self._slack.get(group, 0) + by


def slack(snapshot: ClusterSnapshot) -> dict[str, int]:
    """Return how many nodes each group may lose: desired less MinSize, less the terminating nodes that the desired size
    still counts.
    """
    spare = {name: group.desired - group.minimum for name, group in snapshot.groups.items()}
    for node in snapshot.nodes:
        group = snapshot.group_of(node)
        terminating = bool(disruption_taint_of(node, snapshot.now))
        if group is not None and terminating and group.lifecycle_of(node.instance_id) == IN_SERVICE:
            spare[group.name] -= 1
    return spare
