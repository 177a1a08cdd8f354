"""`ports.records.Catalog` on DynamoDB: one item per cluster and kind, its content as compressed JSON, and one with IP
reservations.

The facts of 500 instance types are about 15 KB in this form, far from the 400 KB of an item."""

import base64
import json
import math
import zlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from leeward.adapters.aws.table import Table
from leeward.model.facts import FactKind, Sheet
from leeward.model.reservation import IpReservation, Pool, Promises
from leeward.model.times import format_instant, parse_instant

FACTS = "facts"
KEPT = timedelta(days=7)  # for a cluster that is no longer served
RACES = 3  # attempts to create the map of pools


class DynamoCatalog:
    """Sheets in the table `leeward`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """Read all sheets of the cluster with one BatchGetItem."""
        kinds = {facts_key(cluster, kind): kind for kind in FactKind}
        return {kinds[item["pk"]]: _sheet(item) for item in self._table.get_all(kinds)}

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Overwrite the sheet, unless a later one is there already: of two syncs at once the later one stays."""
        synced = format_instant(sheet.synced)
        self._table.put(
            {
                "pk": facts_key(cluster, kind),
                "synced": synced,
                "content": _packed(sheet.content),
                "expires": math.ceil((sheet.synced + KEPT).timestamp()),
            },
            condition="attribute_not_exists(pk) OR #synced <= :synced",
            values={":synced": synced},
        )

    def promises(self, cluster: str) -> Promises:
        """Read the reservations with one GetItem."""
        item = self._table.get(_promises_key(cluster))
        if item is None:
            return Promises()
        entries = {name: IpReservation.from_json(raw) for name, raw in item.get("entries", {}).items()}
        short = {_pool(name): parse_instant(until) for name, until in item.get("short", {}).items()}
        return Promises(version=int(item.get("version", 0)), by_instance=entries, short=short)

    def promise(self, cluster: str, instance: str, promise: IpReservation, *, after: int) -> bool:
        """Write all reservations in one conditional write: they are few, and each lasts two minutes."""
        before = self.promises(cluster)
        if before.version != after:
            return False
        entries = {name: one.to_json() for name, one in before.with_one(instance, promise).items()}
        written = self._table.update(
            _promises_key(cluster),
            "SET #entries = :entries, #version = :next, #expires = :expires",
            condition="attribute_not_exists(pk) OR #version = :after",
            values={
                ":entries": entries,
                ":next": after + 1,
                ":after": after,
                ":expires": math.ceil((promise.at + KEPT).timestamp()),
            },
        )
        return written is not None

    def run_short(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Record it with one write, or two where the map is missing. Pools are few: those of one cluster's groups."""
        key, names = _promises_key(cluster), {"#pool": f"{pool.instance_type}/{pool.zone}"}
        for _ in range(RACES):
            there = self._table.update(
                key,
                "SET #short.#pool = :until",
                condition="attribute_exists(#short)",
                values={":until": format_instant(until)},
                names=names,
            )
            if there is not None:
                return
            self._table.update(
                key,
                "SET #short = :pools, #version = if_not_exists(#version, :first), "
                "#entries = if_not_exists(#entries, :promises), #expires = :expires",
                condition="attribute_not_exists(#short)",
                values={
                    ":pools": {},
                    ":promises": {},  # a value of its own: the local DynamoDB puts one object in both places
                    ":first": 0,
                    ":expires": math.ceil((until + KEPT).timestamp()),
                },
            )


def _pool(name: str) -> Pool:
    instance_type, _, zone = name.partition("/")
    return Pool(instance_type=instance_type, zone=zone)


def _promises_key(cluster: str) -> str:
    return f"promises#{cluster}"


def facts_key(cluster: str, kind: FactKind) -> str:
    """Return `facts#CLUSTER#KIND`; a cluster's name has no `#`."""
    return f"{FACTS}#{cluster}#{kind.value}"


def _sheet(item: Mapping[str, Any]) -> Sheet:
    content = json.loads(zlib.decompress(base64.b64decode(item["content"])))
    return Sheet(synced=parse_instant(item["synced"]), content=content)


def _packed(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()
