"""Remaining allowance of one run: the budgets of every policy and zone, and how far each group may shrink."""

from collections.abc import Iterable, Mapping
from typing import Self

from leeward.budgets.counts import all_allowances
from leeward.budgets.disruption_budgets import tightest
from leeward.disruption.candidates import IN_SERVICE, Candidate
from leeward.model.node_owners import MARKS
from leeward.policy.document import Reason
from leeward.snapshot.cluster import ClusterSnapshot


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

    def why_not(self, candidate: Candidate, reason: Reason) -> str:
        """Return which budget forbids the node now, empty when none does."""
        policy = candidate.policy.name
        for zone, where in ((None, ""), (candidate.zone, f" in {candidate.zone}")):
            left = self._left.get((policy, reason.value, zone))
            if left is not None and left <= 0:
                return f"the budgets of policy {policy} allow no more {reason.value} nodes{where} now"
        return ""

    def left(self, candidate: Candidate, reason: Reason) -> int | None:
        """Return how many nodes like this one may still be disrupted, None without a limit."""
        policy = candidate.policy.name
        return tightest(self._left.get((policy, reason.value, zone)) for zone in (None, candidate.zone))

    def take(self, candidate: Candidate) -> None:
        """Count the node as disrupted."""
        for key, left in self._left.items():
            if key[0] == candidate.policy.name and key[2] in {None, candidate.zone} and left is not None:
                self._left[key] = max(left - 1, 0)

    def why_not_smaller(self, candidate: Candidate) -> str:
        """Return why the node's group may not lose a node, empty when it may."""
        if self._slack.get(candidate.group.name, 0) > 0:
            return ""
        return f"its group {candidate.group.name} is at its MinSize of {candidate.group.minimum}"

    def may_shrink(self, candidates: Iterable[Candidate], grows: str | None = None) -> bool:
        """Return whether the groups may lose all these nodes while the group `grows` gets one back."""
        wanted: dict[str, int] = {grows: -1} if grows else {}
        for candidate in candidates:
            wanted[candidate.group.name] = wanted.get(candidate.group.name, 0) + 1
        return all(count <= 0 or count <= self._slack.get(name, 0) for name, count in wanted.items())

    def resize(self, group: str, by: int) -> None:
        """Record that a group loses (-1) or gets (1) a node in this run."""
        self._slack[group] = self._slack.get(group, 0) + by


def slack(snapshot: ClusterSnapshot) -> dict[str, int]:
    """Return how many nodes each group may lose: desired less MinSize, less the terminating nodes that the desired size
    still counts.
    """
    found = {name: group.desired - group.minimum for name, group in snapshot.groups.items()}
    for node in snapshot.nodes:
        group = snapshot.group_of(node)
        leaving = any(taint.key in MARKS for taint in node.taints)
        if group is not None and leaving and group.lifecycle_of(node.instance_id) == IN_SERVICE:
            found[group.name] -= 1
    return found
