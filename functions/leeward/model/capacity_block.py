"""Capacity Blocks: when EC2 begins to terminate the instances of one, and the cause that this gives.

Source: EC2's user guide, "Capacity Blocks for ML": instances are terminated from 30 minutes before the end of the block
on, those of UltraServers from 60 minutes before; EventBridge has the warning 10 minutes earlier."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from leeward.model.times import format_instant

TERMINATED_BEFORE = timedelta(minutes=30)
ULTRASERVER_TERMINATED_BEFORE = timedelta(minutes=60)
ULTRASERVER_TYPES = ("p6e-gb", "trn2u.")  # families whose instances are parts of an UltraServer


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityBlock:
    """Capacity Block of a reservation, and its end, as EC2 or the warning says it."""

    reservation: str
    ends: datetime

    @property
    def event_id(self) -> str:
        """Id under which both the warning and the minute reconciler claim an instance: whichever comes second adds
        nothing. A block that was extended gives another.
        """
        return f"capacity-block#{self.reservation}#{format_instant(self.ends)}"

    def taken_at(self, instance_type: str = "") -> datetime:
        """Return when EC2 begins to terminate an instance of this type; of an unknown one as of most."""
        ultraserver = instance_type.startswith(ULTRASERVER_TYPES)
        return self.ends - (ULTRASERVER_TERMINATED_BEFORE if ultraserver else TERMINATED_BEFORE)

    def drained_from(self, instance_type: str, drain_before: timedelta) -> datetime:
        """Return when the drain begins. `drain_before`: the policy's `interruption.capacityBlock.drainBefore`."""
        return self.taken_at(instance_type) - drain_before
