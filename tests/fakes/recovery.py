"""ARC: the simulation's model, with calls counted and failures planned."""

from datetime import datetime

from leeward.model.zonal_shift import ZonalShift
from simulation.aws.recovery import SimRecovery
from tests.fakes.calls import Calls


class FakeRecovery(Calls):
    """No shift until one is started: `arc.start(…)`."""

    def __init__(self) -> None:
        super().__init__()
        self.arc = SimRecovery()

    def shifts(self, cluster: str, now: datetime) -> tuple[ZonalShift, ...]:
        """Shifts in effect."""
        self._call("shifts")
        return self.arc.shifts(cluster, now)
