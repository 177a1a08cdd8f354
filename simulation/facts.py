"""Facts about a group, an instance or a message that several rules need. Decides nothing about right and wrong."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar

from leeward.model.group import Group
from leeward.policy.document import Budget, NodePolicy
from simulation.asked import AskedOf, Kind
from simulation.view import WorldView

T = TypeVar("T")
FAR_AHEAD = timedelta(days=1)  # maintenance further away waits for the budgets


class News:
    """Reader of lists that grow only at their end; it remembers how far each was read."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, name: str, all_: Sequence[T]) -> Sequence[T]:
        """Return the entries since the last read."""
        seen, there = self._seen.get(name, 0), len(all_)
        if there == seen:  # nearly always
            return ()
        self._seen[name] = there
        return all_[seen:] if there > seen else ()


def group_of(view: WorldView, instance: str) -> Group | None:
    """Return the group that holds the instance now."""
    return next((group for group in view.groups.values() if group.lifecycle_of(instance) is not None), None)


def maximum_kept(view: WorldView, group: Group) -> bool:
    """Return whether its MaxSize is not as its owner chose it, nor its desired size where others have made that larger,
    and no record is open, for whose replacement the group was raised.
    """
    if group.maximum == max(view.maxima[group.name], group.desired):
        return False
    return not any(group.lifecycle_of(instance) is not None for instance in view.open_since)


def policy_of(view: WorldView, group: Group | None) -> NodePolicy | None:
    """Return the policy by which the product acts on the group; None where it leaves it alone."""
    policies = view.policies
    if group is None or policies.pauses.everything(group.name) or not policies.settings.interruption:
        return None
    policy = policies.policy_of(group)
    return policy if policy is not None and policy.interruption.enabled else None


def is_ahead(taken: float | None, view: WorldView) -> bool:
    """Return whether EC2 takes the instance so late that its termination may wait for the budgets.
    `taken`: as `AskedOf.taken_at` returns it.
    """
    return taken is not None and taken - view.now > FAR_AHEAD.total_seconds()


def always(budget: Budget) -> bool:
    """Return whether the budget holds for every reason at any time, in its zone or in all of them."""
    return not budget.reasons and budget.window is None


def is_paced(instance: str, asked: AskedOf, view: WorldView) -> bool:
    """Return whether the only request about the instance is maintenance far ahead, as far as the world shows."""
    requests = asked.of(instance)
    far = [one.takes for one in requests if one.kind is Kind.MAINTENANCE and one.takes is not None]
    if not far or len(far) < len(requests) or instance in view.started_manually or not view.serves(instance):
        return False
    return min(far) - view.now > FAR_AHEAD.total_seconds()
