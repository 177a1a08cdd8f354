"""`ports.records.Upgrades` and `Disruptions` on DynamoDB, written at the version that was read.

An upgrade is one item a group, `upgrade#GROUP`, and one beside it, `plan#GROUP`, with the result of pre-flight; a run
one item a cluster, `disruption#CLUSTER`. Groups of other accounts and Regions than the deployment's own, of which one
may have the same name, have `ACCOUNT/REGION/` before it in their keys. Items are the records' fields
(`model.codec`)."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any
from zlib import compress, decompress

from leeward.adapters.aws.table import DynamoTable
from leeward.disruption.record import DisruptionRecord
from leeward.model.codec import decode, decode_item, encode
from leeward.upgrade.record import UpgradeRecord

MOST_READABLE = 250_000  # characters that are stored uncompressed: an item takes 400 KB
ALWAYS = "attribute_exists(pk) OR attribute_not_exists(pk)"
UPGRADE = "upgrade"  # first part of a record's key
DISRUPTION = "disruption"  # first part of a record's key


class DynamoUpgrades:
    """Records of upgrades in the table `leeward`. They stay: a rollback needs what an ended one replaced."""

    def __init__(self, table: DynamoTable, scope: str = "") -> None:
        """`scope`: `ACCOUNT/REGION/` of groups elsewhere, before their names in the keys."""
        self._table = table
        self._scope = scope

    def read(self, group: str) -> UpgradeRecord | None:
        """Read the record with one GetItem, strongly consistent."""
        item = self._table.get(self._key(group))
        return upgrade_of(item) if item is not None else None

    def read_all(self, groups: Iterable[str]) -> Mapping[str, UpgradeRecord]:
        """Read the records with BatchGetItem, a hundred at a time."""
        records = [upgrade_of(item) for item in self._table.get_all(map(self._key, groups), consistent=True)]
        return {record.group: record for record in records}

    def write(self, record: UpgradeRecord) -> UpgradeRecord | None:
        """Write the record with one conditional PutItem, at the version that was read of the same upgrade."""
        written = replace(record, version=record.version + 1)
        item = {"pk": self._key(record.group), **encode(written)}
        return written if self._table.put_version(item, version=record.version, same="began") else None

    def keep_plan(self, group: str, document: Mapping[str, Any]) -> None:
        """Store the plan with one PutItem of at most 400 KB. As JSON: it has numbers that the records have not. The
        waves of thousands of nodes are compressed.
        """
        text = json.dumps(document)
        said = {"document": text} if len(text) <= MOST_READABLE else {"compressed": _compressed(text)}
        self._table.put({"pk": self._plan_key(group), **said}, condition=ALWAYS)

    def plan(self, group: str) -> Mapping[str, Any] | None:
        """Read the plan with one GetItem."""
        item = self._table.get(self._plan_key(group))
        if item is None:
            return None
        found: Mapping[str, Any] = json.loads(item.get("document") or _expanded(item["compressed"]))
        return found

    def _key(self, group: str) -> str:
        return upgrade_key(f"{self._scope}{group}")

    def _plan_key(self, group: str) -> str:
        return f"plan#{self._scope}{group}"


class DynamoDisruptions:
    """Records of runs in the table `leeward`. They stay: they hold which groups are in cooldown."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def read(self, cluster: str) -> DisruptionRecord | None:
        """Read the record with one GetItem, strongly consistent."""
        item = self._table.get(_key(cluster))
        return run_of(item) if item is not None else None

    def write(self, record: DisruptionRecord) -> DisruptionRecord | None:
        """Write the record with one conditional PutItem, at the version that was read of the same run."""
        written = replace(record, version=record.version + 1)
        item = {"pk": _key(record.cluster), **encode(written)}
        return written if self._table.put_version(item, version=record.version, same="number") else None


def _compressed(text: str) -> str:
    return b64encode(compress(text.encode())).decode()


def _expanded(text: str) -> bytes:
    return decompress(b64decode(text))


def upgrade_key(group: str) -> str:
    """Return `upgrade#GROUP`."""
    return f"{UPGRADE}#{group}"


def upgrade_of(item: Mapping[str, Any]) -> UpgradeRecord:
    """Return the record of an upgrade that an item holds. Raises NewerRecordError."""
    return decode_item(item, partial(decode, UpgradeRecord))


def run_of(item: Mapping[str, Any]) -> DisruptionRecord:
    """Return the record of a disruption run that an item holds. Raises NewerRecordError."""
    return decode_item(item, partial(decode, DisruptionRecord))


def _key(cluster: str) -> str:
    return f"{DISRUPTION}#{cluster}"
