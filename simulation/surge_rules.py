"""Rule about `update.maxSurge`: instances that an upgrade adds to a group, as EC2 has them and not as the desired size
counts them. An instance that was terminated with decrement counts until it ends.

An instance that its group replaces, or that another cause terminates as well, is left out: its successor takes its
place, and its decrement may settle that launch instead of one of the upgrade."""

from collections.abc import Iterator

from leeward.model.group import Group
from leeward.model.lifecycle import ENDING, STAYING, role_of
from leeward.policy.document import NodePolicy
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import max_surge
from simulation.asked import Kind
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
            record, policy = view.upgrades.get(name), view.policies.policy_of(group)
            if record is None or policy is None or not launched & {member.id for member in group.instances}:
                continue
            if policy.update.max_surge is None or group.capacity_rebalance:
                continue  # CapacityRebalance adds instances for a while
            extra = sum(_counts(member.id, member.lifecycle, record, view) for member in group.instances)
            extra -= _size(group, record, view)
            if extra > (most := _most(policy, group, record, view)):
                yield f"{name}: {extra} instances beyond its size, maxSurge is {most}"


def _counts(instance: str, lifecycle: str, record: UpgradeRecord, view: WorldView) -> bool:
    role = role_of(lifecycle)
    if role in ENDING:
        upgraded = _is_of_upgrades(instance, view) and not _is_asked_otherwise(instance, view)
        return instance in view.decrements and view.running(instance) and upgraded
    mine = instance in record.under_way and not _is_asked_otherwise(instance, view)
    return role in STAYING and (mine or instance not in view.open_since)


def _is_of_upgrades(instance: str, view: WorldView) -> bool:
    """Return whether an upgrade terminates it; a surplus that was ending before is no instance that it adds."""
    return any(cause.startswith("upgrade#") for cause in view.known_causes(instance))


def _is_asked_otherwise(instance: str, view: WorldView) -> bool:
    """Return whether EC2, an operator or its health has asked for it as well, which may have launched a successor."""
    asked = (one for one in view.asked if one.instance == instance)
    return any(one.kind is not Kind.LIFTED and not one.called_off for one in asked)


def _size(group: Group, record: UpgradeRecord, view: WorldView) -> int:
    """Return the owner's size: that of the start, or a larger one that was set since."""
    return max(record.desired, group.desired - max(view.books[group.name].least, 0))


def _most(policy: NodePolicy, group: Group, record: UpgradeRecord, view: WorldView) -> int:
    return max_surge(policy.update, max(_size(group, record, view), 1))
