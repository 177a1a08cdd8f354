"""Writes of the record of a cluster's zones by the minute reconciler."""

from leeward.errors import RecordChangedError
from leeward.model.zone_record import ZoneRecord
from leeward.ports import Ports


def written(record: ZoneRecord, ports: Ports) -> ZoneRecord:
    """Return the record as written. Raises RecordChangedError if another writer was faster."""
    after = ports.catalog.write_zone_record(record, ports.clock.now())
    if after is None:
        raise RecordChangedError(f"{record.cluster}: another writer changed the record of its zones")
    return after
