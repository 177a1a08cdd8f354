"""System clock."""

import time
from datetime import UTC, datetime


class SystemClock:
    """`ports.clock.Clock` of a running process."""

    def now(self) -> datetime:
        """Return the present in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Block this thread."""
        time.sleep(seconds)
