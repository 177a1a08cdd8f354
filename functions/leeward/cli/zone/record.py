"""Writes of the record of a cluster's zones, at the version that was read.

Decides what a repeated call means: the second evacuation of a zone widens the first one, and its sizes stay those from
before the first."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from leeward.errors import RecordChangedError
from leeward.model.zonal_shift import Evacuation, ZoneRecord
from leeward.ports.clock import Clock
from leeward.ports.records import Catalog

TRIES = 5  # the minute reconciler writes the same item


def change(cluster: str, catalog: Catalog, clock: Clock, changed: Callable[[ZoneRecord], ZoneRecord]) -> ZoneRecord:
    """Write the record and return it; one that does not change is not written. Raises RecordChangedError if other
    writers are always faster.
    """
    for _ in range(TRIES):
        before = catalog.zone_record(cluster)
        wanted = changed(before)
        written = before if wanted == before else catalog.write_zone_record(wanted, clock.now())
        if written is not None:
            return written
    raise RecordChangedError(f"cluster {cluster}: the record of its zones changed at each of {TRIES} tries: try again")


def evacuated(record: ZoneRecord, *, zone: str, groups: Sequence[str], by: str, why: str, now: datetime) -> ZoneRecord:
    """Return the record with the zone closed. Idempotent: an evacuation in force keeps its begin and its caller."""
    before = record.evacuation_of(zone)
    if before is None:
        return record.with_evacuation(Evacuation(zone=zone, by=by, since=now, why=why, groups=tuple(sorted(groups))))
    both = tuple(sorted({*before.groups, *groups})) if groups and before.groups else ()
    if not before.closed:
        both = tuple(sorted(groups))
        before = replace(before, by=by, since=now, why="", returned=None)
    return record.with_evacuation(replace(before, groups=both, why=why or before.why))


def opened(record: ZoneRecord, zone: str, now: datetime) -> ZoneRecord:
    """Return the record with the zone open; unchanged where it is not closed."""
    evacuation = record.evacuation_of(zone)
    if evacuation is None or not evacuation.closed:
        return record
    return record.with_evacuation(replace(evacuation, returned=now))
