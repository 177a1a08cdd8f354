"""A disruption round beside an upgrade: it waits until the round that holds its group has ended.

The upgrade has written its lease before it looks here, and a round looks at leases before it touches anything: whoever
is second sees the first."""

from leeward.errors import GroupBusyError
from leeward.ports import Ports
from leeward.upgrade.record import UpgradeRecord


def wait_for_round(record: UpgradeRecord, ports: Ports) -> None:
    """Raises GroupBusyError, which the state machine tries again for an hour."""
    found = ports.rounds.read(record.cluster)
    if found is not None and found.open and record.group in found.groups:
        nodes = ", ".join(found.going)
        raise GroupBusyError(f"disruption round {found.number} ({found.method.value}) holds {record.group}: {nodes}")
