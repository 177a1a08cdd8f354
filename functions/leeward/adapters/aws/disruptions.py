"""`ports.records.Runs` on DynamoDB: one item a cluster, `disruption#CLUSTER`, written at the version that was read."""

import uuid
from dataclasses import replace
from typing import Any

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
        """Write the record with one conditional PutItem. Versions restart with each run, so its number must be the
        same.

        A writer whose answer got lost recognizes its own mark when botocore repeats the write.
        """
        written, mark = replace(record, version=record.version + 1), uuid.uuid4().hex
        condition, values = "attribute_not_exists(pk) OR attribute_exists(#ended)", dict[str, Any]()
        if record.version:
            condition = "#version = :version AND #number = :number"
            values = {":version": record.version, ":number": record.number}
        item = {"pk": _key(record.cluster), "by": mark, **plain(written)}
        done, there = self._table.put(item, condition=condition, values=values)
        return written if done or (there is not None and there.get("by") == mark) else None


def _key(cluster: str) -> str:
    return f"{DISRUPTION}#{cluster}"
