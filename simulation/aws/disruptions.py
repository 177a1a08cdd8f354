"""`ports.records.Runs` in memory: one record a cluster, with the table's conditional writes."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from leeward.disruption.record import DisruptionRecord


class SimDisruptions:
    """Records of disruption runs. `records` by cluster; `wrote` receives (before, after) of each write; `ended`
    counts by method and outcome.
    """

    def __init__(
        self, wrote: Callable[[DisruptionRecord | None, DisruptionRecord], None] = lambda _before, _after: None
    ) -> None:
        self.records: dict[str, DisruptionRecord] = {}
        self._wrote = wrote
        self.ended: Counter[str] = Counter()

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Return the latest record, open or ended."""
        return self.records.get(cluster)

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """Write the record, only at the version that the caller read, of the same run; None otherwise."""
        there = self.records.get(record.cluster)
        if record.version:
            free = there is not None and (there.version, there.number) == (record.version, record.number)
        else:
            free = there is None or there.ended is not None
        if not free:
            return None
        written = replace(record, version=record.version + 1)
        self.records[record.cluster] = written
        self._wrote(there, written)
        if written.outcome is not None and (there is None or there.outcome is None):
            self.ended[f"{written.method.value} {written.outcome.value}"] += 1
        return written
