"""`ports.records.PauseSwitches` in memory: one item a cluster, with the table's conditional writes."""

from collections.abc import Callable
from dataclasses import replace

from leeward.errors import ThrottledError
from leeward.model.pause import PauseRecord


class SimPauses:
    """Pause switches. `records` by cluster; `is_away`: the table refuses every request."""

    def __init__(self, is_away: Callable[[], bool] = lambda: False) -> None:
        self._is_away = is_away
        self.records: dict[str, PauseRecord] = {}

    def read(self, cluster: str) -> PauseRecord:
        """Return the cluster's current record. Raises ThrottledError."""
        if self._is_away():
            raise ThrottledError("pauses.read: the table refuses every request")
        return self.records.get(cluster, PauseRecord(cluster=cluster))

    def write(self, record: PauseRecord) -> PauseRecord | None:
        """Write the record, only at the version that the caller read; None otherwise."""
        if record.version != self.read(record.cluster).version:
            return None
        self.records[record.cluster] = replace(record, version=record.version + 1)
        return self.records[record.cluster]
