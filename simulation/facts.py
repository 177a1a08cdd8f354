"""What several rules need to know about a group, a record or a message. Decides nothing about right and wrong."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from leeward.model.deadlines import detach_deadline
from leeward.model.group import Group
from leeward.model.termination import CauseKind, TerminationRecord
from leeward.policy.document import NodePolicy
from leeward.policy.selection import policy_for
from simulation.view import WorldView

T = TypeVar("T")
FAR_AHEAD = timedelta(days=1)  # maintenance further away waits for the budgets
CLOCKS = timedelta(seconds=5)  # by which those of two functions may differ


class News:
    """Remembers how far each list, which only grows at its end, has been looked at."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def of(self, name: str, all_: Sequence[T]) -> Sequence[T]:
        """What has come since the last look."""
        seen, there = self._seen.get(name, 0), len(all_)
        if there == seen:  # nearly always
            return ()
        self._seen[name] = there
        return all_[seen:] if there > seen else ()


def group_of(view: WorldView, instance: str) -> Group | None:
    """The group that holds the instance now."""
    return next((group for group in view.groups.values() if group.lifecycle_of(instance) is not None), None)


def policy_of(view: WorldView, group: Group | None) -> NodePolicy | None:
    """The policy by which the product acts on the group; None where it leaves it alone."""
    policies = view.policies
    if group is None or policies.settings.paused or not policies.settings.interruption:
        return None
    policy = policy_for(policies.policies, group.name, group.tags)
    return policy if policy is not None and policy.interruption.enabled else None


def told_first(record: TerminationRecord) -> bool:
    """An upgrade has told the group before the pods had left: our hook holds the instance until they have. Two moments
    so near to each other that the clocks of two functions decide say nothing: no pod was held.
    """
    told = record.times.get("terminating")
    drained = record.times.get("drained")
    return record.has(CauseKind.UPGRADE) and told is not None and (drained is None or told < drained - CLOCKS)


def is_paced(record: TerminationRecord, at: float) -> bool:
    """Whether nothing but maintenance far ahead asks for the instance. `at` in seconds since 1970."""
    only_far = all(cause.kind is CauseKind.SCHEDULED_CHANGE for cause in record.causes)
    now = datetime.fromtimestamp(at, UTC)
    date = detach_deadline(record, now)
    return only_far and date is not None and date - now > FAR_AHEAD
