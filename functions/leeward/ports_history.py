"""What a report needs from outside, beside the ports that every room has: executions as Step Functions remembers them.
The rest of the seam is `ports.py`."""

from collections.abc import Sequence
from typing import Protocol

from leeward.model.execution import Execution, Machine, Step


class PastExecutions(Protocol):
    """Executions of our state machines, running ones and those that ended less than 90 days ago."""

    def look(self, machine: Machine, name: str) -> Execution | None:
        """One, by its name; None when Step Functions knows none, never or not any more."""
        ...

    def steps(self, machine: Machine, name: str) -> Sequence[Step] | None:
        """Its whole history, in the order in which states were entered; None as for `look`."""
        ...
