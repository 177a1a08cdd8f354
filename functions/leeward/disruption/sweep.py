"""The sweeper's part for disruption rounds: one whose execution died is taken up again, and groups get back what could
not be given back at the end of the last one.

Its nodes carry our mark without a termination while replacements come: they are named, so that nobody takes it off."""

from leeward.disruption.completion import give_back_groups
from leeward.disruption.lease import revive
from leeward.disruption.record import RoundRecord
from leeward.ports import Ports


def sweep_round(cluster: str, ports: Ports) -> tuple[frozenset[str], str | None]:
    """(instances of the open round, the execution that was started for it): one read of the table."""
    record = ports.rounds.read(cluster)
    if record is None:
        return frozenset(), None
    if record.open:
        return frozenset(record.nodes.values()), revive(record, ports)
    if (record.suspended or record.raised) and not _upgraded(record, ports):
        restored = give_back_groups(record, ports)
        if restored != record:
            ports.rounds.write(restored)
    return frozenset(), None


def _upgraded(record: RoundRecord, ports: Ports) -> bool:
    """An upgrade has changed the same sizes meanwhile: they are put back when it has ended."""
    upgrades = (ports.upgrades.read(name) for name in {*record.suspended, *record.raised})
    return any(upgrade is not None and upgrade.ended is None for upgrade in upgrades)
