"""The sheets of fn sync: the simulation's, with calls counted and failures planned."""

from collections.abc import Mapping
from datetime import datetime

from leeward.model.facts import FactKind, NamedHooks, Sheet
from leeward.model.nodegroup import NodeRepair
from leeward.model.subnet import IpReservation, Pool, Reservations
from leeward.model.zonal_shift import ZonalShifts, ZoneRecord
from simulation.aws.catalog import SimCatalog
from tests.fakes.calls import Calls


class FakeCatalog(Calls):
    """Empty until something is kept."""

    def __init__(self) -> None:
        super().__init__()
        self._sheets = SimCatalog()

    def read(self, cluster: str) -> Mapping[FactKind, Sheet]:
        """All of the cluster."""
        self._call("read")
        return self._sheets.read(cluster)

    def sheet(self, cluster: str, kind: FactKind) -> Sheet | None:
        """One sheet of the cluster."""
        self._call("sheet")
        return self._sheets.sheet(cluster, kind)

    def keep(self, cluster: str, kind: FactKind, sheet: Sheet) -> None:
        """The later look stays."""
        self._call("keep")
        self._sheets.keep(cluster, kind, sheet)

    def node_repair(self, cluster: str) -> Mapping[str, NodeRepair]:
        """As last kept."""
        self._call("node_repair")
        return self._sheets.node_repair(cluster)

    def named_hooks(self, cluster: str) -> Mapping[str, NamedHooks]:
        """As last kept."""
        self._call("named_hooks")
        return self._sheets.named_hooks(cluster)

    def zonal_shifts(self, cluster: str) -> ZonalShifts:
        """Shifts as last kept."""
        self._call("zonal_shifts")
        return self._sheets.zonal_shifts(cluster)

    def keep_zonal_shifts(self, cluster: str, sheet: Sheet) -> None:
        """The later look stays."""
        self._call("keep_zonal_shifts")
        self._sheets.keep_zonal_shifts(cluster, sheet)

    def zone_record(self, cluster: str) -> ZoneRecord:
        """As last written."""
        self._call("zone_record")
        return self._sheets.zone_record(cluster)

    def write_zone_record(self, record: ZoneRecord, now: datetime) -> ZoneRecord | None:
        """Only at the version that the caller read."""
        self._call("write_zone_record")
        return self._sheets.write_zone_record(record, now)

    def reservations(self, cluster: str) -> Reservations:
        """As they stand."""
        self._call("reservations")
        return self._sheets.reservations(cluster)

    def reserve(self, cluster: str, instance: str, reservation: IpReservation, *, after: int) -> bool:
        """Only at the version that the caller read."""
        self._call("reserve")
        return self._sheets.reserve(cluster, instance, reservation, after=after)

    def mark_unavailable(self, cluster: str, pool: Pool, until: datetime) -> None:
        """Beside the reservations."""
        self._call("mark_unavailable")
        self._sheets.mark_unavailable(cluster, pool, until)
