"""Reconciler for disruption runs: a run whose execution died is restarted, and groups get back the settings that
could not be restored at the end of the last one.

Its nodes carry our taint without a termination while replacements come up: they are named, so that no other reconciler
removes it."""

from leeward.disruption.completion import restore_groups
from leeward.disruption.lease import restart
from leeward.disruption.record import DisruptionRecord
from leeward.ports import Ports


def reconcile_disruption(cluster: str, ports: Ports) -> tuple[frozenset[str], str | None]:
    """Return (instances of the open run, the execution that was started for it): one read of the table."""
    record = ports.disruptions.read(cluster)
    if record is None:
        return frozenset(), None
    if record.open:
        return frozenset(record.nodes.values()), restart(record, ports.disruption_executions, ports.clock)
    if record.suspended or record.raised:
        restored = restore_groups(record, ports, _upgraded(record, ports))
        if restored != record:
            ports.disruptions.write(restored)
    return frozenset(), None


def _upgraded(record: DisruptionRecord, ports: Ports) -> frozenset[str]:
    """Return the groups of the record with an open upgrade, which has changed the same sizes: they are restored when it
    has ended.
    """
    upgrades = {name: ports.upgrades.read(name) for name in {*record.suspended, *record.raised}}
    return frozenset(name for name, upgrade in upgrades.items() if upgrade is not None and upgrade.ended is None)
