"""`ports.records.Catalog` on DynamoDB.

Decides how facts and reservations are stored: one item per cluster and kind of facts, with the content as compressed
JSON, and one item per cluster with its IP reservations and unavailable pools. The facts of 500 instance types are about
15 KB in this form; an item may have 400 KB."""

import base64
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from leeward.adapters.aws.table import DynamoTable, new_mark
from leeward.errors import ObjectGoneError
from leeward.model.codec import decode, encode
from leeward.model.facts import FactKind, NamedHooks, Sheet, named_hooks_of, node_repair_of, shifts_of
from leeward.model.nodegroup import NodeRepair
from leeward.model.subnet import IpReservation, Pool, Reservations
from leeward.model.times import format_instant, parse_instant
from leeward.model.zonal_shift import ZonalShifts, ZoneRecord

FACTS = "facts"
TIME_TO_LIVE = timedelta(days=7)  # after the last write, so that a cluster that is no longer served leaves no items
MAP_CREATION_ATTEMPTS = 3  # of the map of pools; another writer may create it at the same time


class DynamoCatalog:
    """Facts, reservations and unavailable pools in the table `leeward`."""

    def __init__(self, table: DynamoTable) -> None:
        self._table = table

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """Read the cluster's facts by kind with one BatchGetItem; a kind that no sync has written is absent."""
        kinds = {facts_key(cluster, kind): kind for kind in FactKind}
        return {kinds[item["pk"]]: _sheet(item) for item in self._table.get_all(kinds)}

    def sheet(self, cluster: str, kind: FactKind) -> Sheet | None:
        """Read one kind of facts with one GetItem."""
        item = self._table.get(facts_key(cluster, kind))
        return _sheet(item) if item is not None else None

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Write the sheet unless the table has a later one. Idempotent: of two concurrent syncs the later one stays."""
        synced = format_instant(sheet.synced)
        self._table.put(
            {
                "pk": facts_key(cluster, kind),
                "synced": synced,
                "content": _packed(sheet.content),
                "expires": math.ceil((sheet.synced + TIME_TO_LIVE).timestamp()),
            },
            condition="attribute_not_exists(pk) OR #synced <= :synced",
            values={":synced": synced},
        )

    def node_repair(self, cluster: str) -> Mapping[str, NodeRepair]:
        """Read the sheet of EKS' node auto repair with one GetItem."""
        item = self._table.get(facts_key(cluster, FactKind.NODE_REPAIR))
        return node_repair_of(_sheet(item).content) if item is not None else {}

    def named_hooks(self, cluster: str) -> Mapping[str, NamedHooks]:
        """Read the sheet of named hooks with one GetItem."""
        return named_hooks_of(self.sheet(cluster, FactKind.NAMED_HOOKS))

    def zonal_shifts(self, cluster: str) -> ZonalShifts:
        """Read the sheet of zonal shifts and the record of the zones with one GetItem each."""
        shifts, record = (self.sheet(cluster, kind) for kind in (FactKind.ZONAL_SHIFTS, FactKind.ZONE_RECORD))
        return shifts_of(shifts, record)

    def keep_zonal_shifts(self, cluster: str, sheet: Sheet) -> None:
        """Write the sheet of zonal shifts unless the table has a later one."""
        self.keep(cluster, FactKind.ZONAL_SHIFTS, sheet)

    def zone_record(self, cluster: str) -> ZoneRecord:
        """Read the record with one GetItem, strongly consistent. A table that does not exist holds none."""
        try:
            item = self._table.get(facts_key(cluster, FactKind.ZONE_RECORD))
        except ObjectGoneError:
            item = None
        if item is None:
            return ZoneRecord(cluster=cluster)
        return decode(ZoneRecord, _sheet(item).content)

    def write_zone_record(self, record: ZoneRecord, now: datetime) -> ZoneRecord | None:
        """Write the item with one conditional PutItem. It does not expire: a version that begins again would be met
        twice, and an evacuation lasts until an operator ends it.
        """
        written = replace(record, version=record.version + 1)
        item = {
            "pk": facts_key(record.cluster, FactKind.ZONE_RECORD),
            "synced": format_instant(now),
            "version": written.version,
            "content": _packed(encode(written)),
        }
        return written if self._table.put_kept(item) else None

    def reservations(self, cluster: str) -> Reservations:
        """Read the reservations and unavailable pools with one GetItem."""
        item = self._table.get(_reservations_key(cluster))
        if item is None:
            return Reservations()
        entries = {name: decode(IpReservation, raw) for name, raw in item.get("entries", {}).items()}
        short = {_pool(name): parse_instant(until) for name, until in item.get("short", {}).items()}
        return Reservations(version=int(item.get("version", 0)), by_instance=entries, short=short)

    def reserve(self, cluster: str, instance: str, reservation: IpReservation, *, after: int) -> bool:
        """Add or replace the instance's reservation; return False where another writer changed version `after`.

        One conditional write replaces all reservations: they are few, and each lasts two minutes.
        """
        before = self.reservations(cluster)
        if before.version != after:
            return False
        entries = {name: encode(entry) for name, entry in before.with_one(instance, reservation).items()}
        written = self._table.update(
            _reservations_key(cluster),
            "SET #entries = :entries, #version = :next, #expires = :expires, #by = :mark",
            condition="attribute_not_exists(pk) OR #version = :after",
            values={
                ":entries": entries,
                ":next": after + 1,
                ":after": after,
                ":expires": math.ceil((reservation.at + TIME_TO_LIVE).timestamp()),
                ":mark": new_mark(),
            },
            mark="by",
        )
        return written is not None

    def mark_unavailable(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Record that the pool has no capacity until `until`. Idempotent.

        One write, or three where the map of pools does not exist yet. Pools are never removed: they are few, those of
        one cluster's groups.
        """
        key, names = _reservations_key(cluster), {"#pool": f"{pool.instance_type}/{pool.zone}"}
        for _ in range(MAP_CREATION_ATTEMPTS):
            written = self._table.update(
                key,
                "SET #short.#pool = :until",
                condition="attribute_exists(#short)",
                values={":until": format_instant(until)},
                names=names,
            )
            if written is not None:
                return
            self._table.update(
                key,
                "SET #short = :pools, #version = if_not_exists(#version, :first), "
                "#entries = if_not_exists(#entries, :reservations), #expires = :expires",
                condition="attribute_not_exists(#short)",
                values={
                    ":pools": {},
                    ":reservations": {},  # a value of its own: the local DynamoDB puts one object in both places
                    ":first": 0,
                    ":expires": math.ceil((until + TIME_TO_LIVE).timestamp()),
                },
            )


def _pool(name: str) -> Pool:
    instance_type, _, zone = name.partition("/")
    return Pool(instance_type=instance_type, zone=zone)


def _reservations_key(cluster: str) -> str:
    return f"reservations#{cluster}"


def facts_key(cluster: str, kind: FactKind) -> str:
    """Return `facts#CLUSTER#KIND`; a cluster's name has no `#`."""
    return f"{FACTS}#{cluster}#{kind.value}"


def _sheet(item: Mapping[str, Any]) -> Sheet:
    content = json.loads(zlib.decompress(base64.b64decode(item["content"])))
    return Sheet(synced=parse_instant(item["synced"]), content=content)


def _packed(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
