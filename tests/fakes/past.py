"""Step Functions' memory, written down by a test."""

from collections.abc import Sequence

from leeward.model.execution import Execution, Machine, Step
from tests.fakes.calls import Calls


class FakePast(Calls):
    """`executions` and `histories` by machine and name; what is in neither is not there (any more)."""

    def __init__(self) -> None:
        super().__init__()
        self.executions: dict[tuple[Machine, str], Execution] = {}
        self.histories: dict[tuple[Machine, str], Sequence[Step]] = {}

    def put(self, execution: Execution, *steps: Step) -> None:
        """One that is still remembered."""
        self.executions[execution.machine, execution.name] = execution
        self.histories[execution.machine, execution.name] = steps

    def look(self, machine: Machine, name: str) -> Execution | None:
        """By its name."""
        self._call("look")
        return self.executions.get((machine, name))

    def steps(self, machine: Machine, name: str) -> Sequence[Step] | None:
        """Its history."""
        self._call("steps")
        return self.histories.get((machine, name))
