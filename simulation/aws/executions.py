"""`ports.Executions` on the state machine's runner."""

from leeward.model.termination import execution_name
from simulation.machine import StateMachine


class SimExecutions:
    """Names as the product makes them."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine

    def start(self, instance: str, attempt: int) -> bool:
        """True when it runs, also with an input that somebody chose by hand; False when a closed one holds the name."""
        name = execution_name(instance, attempt)
        begun = self._machine.start(name, {"instance": instance, "attempt": attempt, "v": 1})
        return begun or self.running(instance, attempt)

    def running(self, instance: str, attempt: int) -> bool:
        """Whether it is open."""
        return execution_name(instance, attempt) in self._machine.executions

    def wake(self, token: str) -> None:
        """A token whose task has ended is no error."""
        self._machine.succeed(token)
