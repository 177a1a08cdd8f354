"""Remaining allowance of one run: the budgets of every policy and zone, and how far each group may shrink."""

from collections.abc import Iterable, Mapping
from typing import Protocol, Self

from leeward.budgets.counts import all_allowances
from leeward.budgets.disruption_budgets import tightest
from leeward.model.group import Group
from leeward.model.lifecycle import IN_SERVICE
from leeward.model.node_owners import disruption_taint_of
from leeward.policy.document import NodePolicy, Reason
from leeward.snapshot.cluster import ClusterSnapshot


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

    def reason_to_keep(self, node: Disruptable, reason: Reason) -> str:
        """Return which budget forbids the node now, empty when none does."""
        policy = node.policy.name
        for zone, where in ((None, ""), (node.zone, f" in {node.zone}")):
            left = self._left.get((policy, reason.value, zone))
            if left is not None and left <= 0:
                return f"the budgets of policy {policy} allow no more {reason.value} nodes{where} now"
        return ""

    def left(self, node: Disruptable, reason: Reason) -> int | None:
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
