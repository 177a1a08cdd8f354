"""`ports.records.PauseSwitches` on DynamoDB: one item a cluster, `pause#CLUSTER`, written at the version that was
read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from leeward.adapters.aws.table import DynamoTable, Item
from leeward.errors import ObjectGoneError
from leeward.model.codec import decode, encode
from leeward.model.pause import PauseRecord

PAUSE = "pause"  # first part of an item's key


class DynamoPauses:
    """Pauses in the table `leeward`. Items stay: a version that begins again would be met twice."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def read(self, cluster: str) -> PauseRecord:
        """Read the item with one GetItem, strongly consistent. A table that does not exist holds no pause."""
        try:
            item = self._table.get(_key(cluster))
        except ObjectGoneError:
            item = None
        return pause_record(item) if item is not None else PauseRecord(cluster=cluster)

    def write(self, record: PauseRecord) -> PauseRecord | None:
        """Write the item with one conditional PutItem."""
        written = replace(record, version=record.version + 1)
        return written if self._table.put_kept(pause_item(written)) else None


def pause_record(item: Mapping[str, Any]) -> PauseRecord:
    """Return the record in an item."""
    return decode(PauseRecord, item)


def _key(cluster: str) -> str:
    return f"{PAUSE}#{cluster}"


def pause_item(record: PauseRecord) -> Item:
    """Return the item of a record, without the mark of the write."""
    return {"pk": _key(record.cluster), **encode(record)}
