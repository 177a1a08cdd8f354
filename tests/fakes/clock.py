"""Time that a test moves."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


class FakeClock:
    """`sleep` jumps; `slept` is what was asked for, in seconds."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self.slept: list[float] = []

    def now(self) -> datetime:
        """The present."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Jump, and remember it."""
        self.slept.append(seconds)
        self._now += timedelta(seconds=seconds)

    def advance(self, **span: float) -> datetime:
        """`advance(minutes=2)`: jump without a caller having asked for it."""
        self._now += timedelta(**span)
        return self._now
