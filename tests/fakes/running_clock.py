"""Time that passes by being looked at, as it does for a search that takes long."""

from datetime import datetime, timedelta

from tests.fakes.clock import START, FakeClock


class RunningClock(FakeClock):
    """A second passes at each look."""

    def __init__(self, now: datetime = START, *, step: float = 1.0) -> None:
        super().__init__(now)
        self._step = timedelta(seconds=step)

    def now(self) -> datetime:
        """The present, which is past afterwards."""
        present = super().now()
        self._now = present + self._step
        return present
