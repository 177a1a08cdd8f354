"""`ports.records.Upgrades` in memory: one record a group, with the table's conditional writes."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from leeward.upgrade.record import UpgradeRecord
from simulation.aws.versioned import VersionedRecords
from simulation.journal import Journal
from simulation.ordered import Ordered


class SimUpgrades:
    """Upgrade records and plans. `records` and `plans` by group. `wrote` receives every write, with the record before
    it. `ordered`: requests of operators.
    """

    def __init__(self, wrote: Callable[[UpgradeRecord | None, UpgradeRecord], None] = lambda _, __: None) -> None:
        self.table = VersionedRecords[UpgradeRecord](key="group", same="began", wrote=wrote)
        self.records = self.table.records
        self.plans: dict[str, Mapping[str, Any]] = {}
        self.ordered = Journal[Ordered]()

    def read(self, group: str) -> UpgradeRecord | None:
        """Return the latest record, open or ended."""
        return self.table.read(group)

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Return the records by group."""
        return {name: record for name in groups if (record := self.table.read(name)) is not None}

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """Write the record, only at the version that the caller read, of the same upgrade; None otherwise."""
        return self.table.write(record)

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """Overwrite the group's plan."""
        self.plans[group] = json.loads(json.dumps(document))

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """Return the latest plan."""
        return self.plans.get(group)
