"""`ports.records.PauseSwitches` in memory: one item a cluster, with the table's conditional writes."""

from dataclasses import replace

from leeward.model.pause import PauseRecord


class SimPauses:
    """Pause switches. `records` by cluster."""

    def __init__(self) -> None:
        self.records: dict[str, PauseRecord] = {}

    def read(self, cluster: str) -> PauseRecord:
        """Return the cluster's current record."""
        return self.records.get(cluster, PauseRecord(cluster=cluster))

    def write(self, record: PauseRecord) -> PauseRecord | None:
        """Write the record, only at the version that the caller read; None otherwise."""
        if record.version != self.read(record.cluster).version:
            return None
        self.records[record.cluster] = replace(record, version=record.version + 1)
        return self.records[record.cluster]
