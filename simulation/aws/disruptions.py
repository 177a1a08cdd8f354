"""`ports.records.Runs` in memory: one record a cluster, with the table's conditional writes."""

from collections import Counter
from collections.abc import Callable

from leeward.disruption.record import DisruptionRecord
from simulation.aws.versioned import VersionedRecords


class SimDisruptions:
    """Records of disruption runs. `records` by cluster; `wrote` receives (before, after) of each write; `ended`
    counts by method and outcome.
    """

    def __init__(
        self, wrote: Callable[[DisruptionRecord | None, DisruptionRecord], None] = lambda _before, _after: None
    ) -> None:
        self.table = VersionedRecords[DisruptionRecord](key="cluster", same="number", wrote=self._count)
        self.records = self.table.records
        self._wrote = wrote
        self.ended: Counter[str] = Counter()

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Return the latest record, open or ended."""
        return self.table.read(cluster)

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """Write the record, only at the version that the caller read, of the same run; None otherwise."""
        return self.table.write(record)

    def _count(self, before: DisruptionRecord | None, after: DisruptionRecord) -> None:
        self._wrote(before, after)
        if after.outcome is not None and (before is None or before.outcome is None):
            self.ended[f"{after.method.value} {after.outcome.value}"] += 1
