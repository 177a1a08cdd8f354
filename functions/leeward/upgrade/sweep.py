"""The sweeper's part for upgrades: what an execution that was stopped, or died, could not give back.

A lease without an open execution holds nothing: AZRebalance is resumed, the maximum size put back where it can be. The
record stays, and the next start goes on where it was."""

from collections.abc import Iterable

from leeward.model.group import Group
from leeward.ports import Ports
from leeward.upgrade.ending import give_back_group
from leeward.upgrade.lease import held
from leeward.upgrade.record import UpgradeRecord


def sweep_upgrades(groups: Iterable[Group], ports: Ports) -> list[str]:
    """Names of groups that got something back: one read of the table for each group."""
    found: list[str] = []
    for group in groups:
        record = ports.upgrades.read(group.name)
        if record is None or not _owes(record, group):
            continue
        if record.ended is None and held(record, ports):
            continue
        restored = give_back_group(record, ports)
        if restored != record and ports.upgrades.write(restored) is not None:
            found.append(group.name)
    return found


def _owes(record: UpgradeRecord, group: Group) -> bool:
    """A maximum size goes back only once the desired size fits below it."""
    return record.suspended or (record.raised_maximum and group.desired <= record.maximum)
