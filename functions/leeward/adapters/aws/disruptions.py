"""`ports.records.Runs` on DynamoDB: one item a cluster, `disruption#CLUSTER`, written at the version that was read."""

from dataclasses import replace

from leeward.adapters.aws.table import Table
from leeward.adapters.aws.upgrade_items import made, plain
from leeward.disruption.record import DisruptionRecord

DISRUPTION = "disruption"  # first part of a record's key


class DynamoDisruptions:
    """Records of runs in the table `leeward`. They stay: they hold which groups are in cooldown."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Read the record with one GetItem, strongly consistent."""
        item = self._table.get(_key(cluster))
        found: DisruptionRecord | None = made(DisruptionRecord, item) if item is not None else None
        return found

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """Write the record with one conditional PutItem, at the version that was read of the same run."""
        written = replace(record, version=record.version + 1)
        item = {"pk": _key(record.cluster), **plain(written)}
        return written if self._table.put_version(item, version=record.version, same="number") else None


def _key(cluster: str) -> str:
    return f"{DISRUPTION}#{cluster}"
