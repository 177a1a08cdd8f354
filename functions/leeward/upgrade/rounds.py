"""Wait of an upgrade for a disruption round: until the round that holds its group has ended.

The upgrade has written its lease before it reads here, and a round reads leases before it changes anything: the
second of the two sees the first."""

from leeward.errors import GroupBusyError
from leeward.ports import Ports
from leeward.upgrade.record import UpgradeRecord


def wait_for_round(record: UpgradeRecord, ports: Ports) -> None:
    """Raise GroupBusyError while a round holds the group; the state machine retries it for an hour."""
    found = ports.rounds.read(record.cluster)
    if found is not None and found.open and record.group in found.groups:
        nodes = ", ".join(found.going)
        raise GroupBusyError(f"disruption round {found.number} ({found.method.value}) holds {record.group}: {nodes}")
