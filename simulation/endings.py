"""Ends of executions as operators see them: the input, the status, the state and the cause of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulation.definitions import DISRUPTION_RUN, UPGRADES
from simulation.machine import Execution

PREFIX = "leeward-"  # of the names of state machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """End of one execution. `began` and `at` in seconds since 1970; `machine` by the name of its definition."""

    began: float
    at: float
    name: str
    machine: str
    status: str
    state: str
    cause: str
    asked: Mapping[str, Any]

    @property
    def group(self) -> str:
        """Group of an upgrade's execution, empty for any other."""
        return str(self.asked.get("group") or "") if self.machine in UPGRADES else ""

    @property
    def cluster(self) -> str:
        """Cluster of a disruption run's execution, empty for any other."""
        return str(self.asked.get("cluster") or "") if self.machine == DISRUPTION_RUN else ""

    @property
    def action(self) -> str:
        """Control request of an operator, empty for a start."""
        return str(self.asked.get("action") or "")


def ending_of(execution: Execution, at: float) -> Ending:
    """Return the end of an execution that is over."""
    asked = execution.input if isinstance(execution.input, Mapping) else {}
    return Ending(
        began=execution.started,
        at=at,
        name=execution.name,
        machine=execution.machine.rpartition(":")[2].removeprefix(PREFIX),
        status=execution.status,
        state=execution.state,
        cause=execution.cause,
        asked=asked,
    )
