"""`ports.records.Catalog` in memory: the facts that fn sync has written."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from leeward.model.codec import decode, encode
from leeward.model.facts import FactKind, NamedHooks, Sheet, named_hooks_of, node_repair_of, shifts_of
from leeward.model.nodegroup import NodeRepair
from leeward.model.subnet import IpReservation, Pool, Reservations
from leeward.model.zonal_shift import ZonalShifts, ZoneRecord


class SimCatalog:
    """Sheets by cluster and kind, as JSON returns them."""

    def __init__(self) -> None:
        self._sheets: dict[tuple[str, FactKind], Sheet] = {}
        self._reservations: dict[str, Reservations] = {}
        self._zones: dict[str, ZoneRecord] = {}

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """Return all sheets of the cluster."""
        return {kind: sheet for (name, kind), sheet in self._sheets.items() if name == cluster}

    def sheet(self, cluster: str, kind: FactKind) -> Sheet | None:
        """Return one sheet of the cluster."""
        return self._sheets.get((cluster, kind))

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """Store a sheet; the one with the later observation stays."""
        there = self._sheets.get((cluster, kind))
        if there is None or there.synced <= sheet.synced:
            self._sheets[cluster, kind] = replace(sheet, content=json.loads(json.dumps(sheet.content)))

    def node_repair(self, cluster: str) -> Mapping[str, NodeRepair]:
        """Return EKS' node auto repair of managed groups as last kept."""
        sheet = self._sheets.get((cluster, FactKind.NODE_REPAIR))
        return node_repair_of(sheet.content) if sheet is not None else {}

    def named_hooks(self, cluster: str) -> Mapping[str, NamedHooks]:
        """Return the named hooks as last kept."""
        return named_hooks_of(self.sheet(cluster, FactKind.NAMED_HOOKS))

    def zonal_shifts(self, cluster: str) -> ZonalShifts:
        """Return the zonal shifts of the cluster as last kept."""
        shifts, record = (self.sheet(cluster, kind) for kind in (FactKind.ZONAL_SHIFTS, FactKind.ZONE_RECORD))
        return shifts_of(shifts, record)

    def keep_zonal_shifts(self, cluster: str, sheet: Sheet) -> None:
        """Store the sheet of zonal shifts."""
        self.keep(cluster, FactKind.ZONAL_SHIFTS, sheet)

    def zone_record(self, cluster: str) -> ZoneRecord:
        """Return the evacuations of the cluster."""
        return self._zones.get(cluster, ZoneRecord(cluster=cluster))

    def write_zone_record(self, record: ZoneRecord, now: datetime) -> ZoneRecord | None:
        """Write the record, only at the version that the caller read."""
        if self.zone_record(record.cluster).version != record.version:
            return None
        content = json.loads(json.dumps(encode(replace(record, version=record.version + 1))))
        written = decode(ZoneRecord, content)
        self._zones[record.cluster] = written
        self._sheets[record.cluster, FactKind.ZONE_RECORD] = Sheet(synced=now, content=content)
        return written

    def reservations(self, cluster: str) -> Reservations:
        """Return the cluster's current reservations."""
        return self._reservations.get(cluster, Reservations())

    def reserve(self, cluster: str, instance: str, reservation: IpReservation, *, after: int) -> bool:
        """Write a reservation, only at the version that the caller read; return whether it was written."""
        there = self.reservations(cluster)
        if there.version != after:
            return False
        self._reservations[cluster] = replace(
            there, version=after + 1, by_instance=there.with_one(instance, reservation)
        )
        return True

    def mark_unavailable(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Record, beside the reservations, that the pool is short of capacity until `until`."""
        there = self.reservations(cluster)
        self._reservations[cluster] = replace(there, short={**there.short, pool: until})
