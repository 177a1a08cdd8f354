"""Wait of an upgrade for a disruption run: until the run that holds its group has ended.

The upgrade has written its lease before it reads here, and a run reads leases before it changes anything: the
second of the two sees the first."""

from leeward.errors import GroupBusyError
from leeward.ports.records import Disruptions
from leeward.upgrade.record import UpgradeRecord


def wait_for_disruption(record: UpgradeRecord, disruptions: Disruptions) -> None:
    """Raise GroupBusyError while a run holds the group; the state machine retries it for an hour."""
    found = disruptions.read(record.cluster)
    if found is not None and found.open and record.group in found.groups:
        nodes = ", ".join(found.to_terminate)
        raise GroupBusyError(f"disruption run {found.number} ({found.method.value}) holds {record.group}: {nodes}")
