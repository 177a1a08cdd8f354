"""Rule about `update.maxSurge`: instances that an upgrade adds to a group, as EC2 has them and not as the desired size
counts them. An instance that was terminated with decrement counts until it ends.

An instance that its group replaces, or that another cause terminates, is left out: its successor takes its place."""

from collections.abc import Iterator

from leeward.model.group import Group
from leeward.model.lifecycle import ENDING, STAYING, role_of
from leeward.policy.document import NodePolicy
from leeward.policy.selection import policy_for
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import max_surge
from simulation.facts import News
from simulation.view import WorldView

DECIDED = 900.0  # seconds: a limit that was written later does not hold for launches of before
OF_UPGRADES = "leeward-upgrade-"  # how the client tokens of their launches begin


class MaxSurge:
    """Limit on the instances of groups at each launch of their upgrades, one object for each run."""

    def __init__(self) -> None:
        self._new = News().of

    def check(self, view: WorldView) -> Iterator[str]:
        """Yield groups with more instances than their size and maxSurge, when one was launched ahead of drains."""
        launched = {name for token, name in self._new("launches", view.launches) if token.startswith(OF_UPGRADES)}
        if not launched or view.now - view.rewritten < DECIDED:
            return
        for name, group in view.groups.items():
            record, policy = view.upgrades.get(name), policy_for(view.policies.policies, name, group.tags)
            if record is None or policy is None or not launched & {member.id for member in group.instances}:
                continue
            if policy.update.max_surge is None or _grows_otherwise(group, view):
                continue
            extra = sum(_counts(member.id, member.lifecycle, record, view) for member in group.instances)
            extra -= _size(group, record, view)
            if extra > (most := _most(policy, group, record, view)):
                yield f"{name}: {extra} instances beyond its size, maxSurge is {most}"


def _grows_otherwise(group: Group, view: WorldView) -> bool:
    """Return whether others add instances for a while: its own CapacityRebalance, or capacity ahead of a shift."""
    return group.capacity_rebalance or bool(view.zone_record.launched_in(group.name))


def _counts(instance: str, lifecycle: str, record: UpgradeRecord, view: WorldView) -> bool:
    role = role_of(lifecycle)
    if role in ENDING:
        return instance in view.decrements and view.running(instance) and _is_of_upgrades(instance, view)
    others = instance in view.open_since and instance not in record.under_way
    return role in STAYING and not others


def _is_of_upgrades(instance: str, view: WorldView) -> bool:
    """Return whether an upgrade terminates it and nothing else replaces it; a surplus that was ending before is no
    instance that the upgrade adds.
    """
    causes = {cause.partition("#")[0] for cause in view.known_causes(instance)}
    return "upgrade" in causes and causes <= {"upgrade", "surplus"}


def _size(group: Group, record: UpgradeRecord, view: WorldView) -> int:
    """Return the owner's size: that of the start, or a larger one that was set since."""
    return max(record.desired, group.desired - max(view.books[group.name].least, 0))


def _most(policy: NodePolicy, group: Group, record: UpgradeRecord, view: WorldView) -> int:
    return max_surge(policy.update, max(_size(group, record, view), 1))
