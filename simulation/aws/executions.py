"""`ports.Executions` on the state machine's runner."""

from leeward.model.termination import execution_name
from simulation.machine import StateMachine


class SimExecutions:
    """Names as the product makes them."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine

    def start(self, instance: str, attempt: int) -> bool:
        """True when it runs, False when a closed one holds the name."""
        return self._machine.start(
            execution_name(instance, attempt), {"instance": instance, "attempt": attempt, "v": 1}
        )

    def running(self, instance: str, attempt: int) -> bool:
        """Whether it is open."""
        return execution_name(instance, attempt) in self._machine.executions

    def wake(self, token: str) -> None:
        """A token whose task has ended is no error."""
        self._machine.succeed(token)
