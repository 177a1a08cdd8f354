"""`ports.records.Upgrades` on DynamoDB: one item a group, `upgrade#GROUP`, written at the version that was read, and
one beside it, `plan#GROUP`, with the result of pre-flight."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from zlib import compress, decompress

from leeward.adapters.aws.table import Table
from leeward.adapters.aws.upgrade_items import upgrade_item, upgrade_key, upgrade_of
from leeward.upgrade.record import UpgradeRecord

MOST_READABLE = 250_000  # characters that are stored uncompressed: an item takes 400 KB
ALWAYS = "attribute_exists(pk) OR attribute_not_exists(pk)"


class DynamoUpgrades:
    """Records of upgrades in the table `leeward`. They stay: a rollback needs what an ended one replaced."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, group: str) -> UpgradeRecord | None:
        """Read the record with one GetItem, strongly consistent."""
        item = self._table.get(upgrade_key(group))
        return upgrade_of(item) if item is not None else None

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Read the records with BatchGetItem, a hundred at a time."""
        records = [upgrade_of(item) for item in self._table.get_all(map(upgrade_key, groups), consistent=True)]
        return {record.group: record for record in records}

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """Write the record with one conditional PutItem, at the version that was read of the same upgrade."""
        written = replace(record, version=record.version + 1)
        item = {"pk": upgrade_key(record.group), **upgrade_item(written)}
        return written if self._table.put_version(item, version=record.version, same="began") else None

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """Store the plan with one PutItem of at most 400 KB. As JSON: it has numbers that the records have not. The
        waves of thousands of nodes are compressed.
        """
        text = json.dumps(document)
        said = {"document": text} if len(text) <= MOST_READABLE else {"compressed": _compressed(text)}
        self._table.put({"pk": _plan_key(group), **said}, condition=ALWAYS)

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """Read the plan with one GetItem."""
        item = self._table.get(_plan_key(group))
        if item is None:
            return None
        found: Mapping[str, Any] = json.loads(item.get("document") or _expanded(item["compressed"]))
        return found


def _compressed(text: str) -> str:
    return b64encode(compress(text.encode())).decode()


def _expanded(text: str) -> bytes:
    return decompress(b64decode(text))


def _plan_key(group: str) -> str:
    return f"plan#{group}"
