"""Port to time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Time, which the simulation jumps."""

    def now(self) -> datetime:
        """Return the present, aware, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep inside a step."""
        ...
