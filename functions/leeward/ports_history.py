"""Port of a report beside the ports that every package has: executions in the history of Step Functions. The rest of
the seam is `ports.py`."""

from collections.abc import Sequence
from typing import Protocol

from leeward.model.execution import Execution, Machine, Step


class PastExecutions(Protocol):
    """Executions of Leeward's state machines, running ones and those that ended less than 90 days ago."""

    def look(self, machine: Machine, name: str) -> Execution | None:
        """Return one execution by its name; None when Step Functions does not know it, never did or not any more."""
        ...

    def steps(self, machine: Machine, name: str) -> Sequence[Step] | None:
        """Return its whole history, in the order in which states were entered; None as for `look`."""
        ...
