"""Zonal shifts kept about a cluster: ARC's answer in the table, read each minute and whenever an event announces one.

Decides what is kept when ARC does not answer: the last known shifts, and the one that the event itself announces."""

from dataclasses import dataclass, replace
from datetime import timedelta

from leeward.errors import LeewardError
from leeward.isolation import attempt
from leeward.model.facts import ClusterFacts, Sheet
from leeward.model.zonal_shift import NEVER, ShiftSource, ZonalShift, ZonalShifts
from leeward.ports.clock import Clock
from leeward.ports.monitoring import RecoveryController
from leeward.ports.records import Catalog

WRITTEN_EVERY = timedelta(minutes=5)  # an answer that changes nothing: readers see that ARC still answers


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftsRead:
    """State of a cluster's shifts after one read of ARC."""

    state: ZonalShifts
    began: tuple[ZonalShift, ...] = ()  # shifts that this read has changed
    ended: tuple[ZonalShift, ...] = ()  # shifts that this read has changed
    failed: str = ""  # why ARC did not answer, empty if it did

    @property
    def changes(self) -> list[str]:
        """Sentences for the shifts that have begun and ended."""
        began = [f"{shift.sentence} is in effect" for shift in self.began]
        return began + [f"{shift.sentence} has ended" for shift in self.ended]


def read_shifts(
    cluster: str,
    clock: Clock,
    recovery: RecoveryController,
    catalog: Catalog,
    *,
    source: ShiftSource,
    announced: ZonalShift | None = None,
) -> ShiftsRead:
    """Ask ARC and write its answer to the table. Idempotent: of two concurrent reads the later one stays.

    `announced`: the shift that an event says has begun; it counts only where ARC does not answer, until it does. Raises
    the errors of the table.
    """
    before, now = catalog.zonal_shifts(cluster), clock.now()
    answer = attempt(lambda: tuple(recovery.shifts(cluster, now)))
    if isinstance(answer, LeewardError):
        failed, after = f"{type(answer).__name__}: {answer}", before.not_polled(str(answer), now, announced)
    else:
        failed, after = "", before.polled(answer, now, source)
    if any(not shift.zone for shift in after.shifts):
        subnets = ClusterFacts.from_sheets(catalog.read(cluster)).subnets
        after = after.named({subnet.zone_id: subnet.zone for subnet in subnets if subnet.zone_id})
    old = before.read is None or now - before.read >= WRITTEN_EVERY
    if replace(after, read=before.read) != before or (old and not failed):
        synced = now if not failed else before.read or NEVER
        catalog.keep_zonal_shifts(cluster, Sheet(synced=synced, content=after.to_json()))
    return ShiftsRead(
        state=after,
        began=after.missing_from(before.shifts),
        ended=before.missing_from(after.shifts),
        failed=failed,
    )
