"""Port to time: the present, and waiting within a step."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Clock of a function; the simulation replaces it with one that advances without waiting."""

    def now(self) -> datetime:
        """Return the present as an aware datetime in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Block the running step for `seconds`; longer waits are Wait states of the state machine."""
        ...
