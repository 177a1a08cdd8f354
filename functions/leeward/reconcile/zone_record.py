"""Writes of the record of a cluster's zones by the minute reconciler."""

from leeward.errors import RecordChangedError
from leeward.model.zonal_shift import ZoneRecord
from leeward.ports.clock import Clock
from leeward.ports.records import Catalog


def written(record: ZoneRecord, catalog: Catalog, clock: Clock) -> ZoneRecord:
    """Return the record as written. Raises RecordChangedError if another writer was faster."""
    after = catalog.write_zone_record(record, clock.now())
    if after is None:
        raise RecordChangedError(f"{record.cluster}: another writer changed the record of its zones")
    return after
