"""`ports.Executions` and `ports.UpgradeExecutions` on the state machines' runner."""

from collections.abc import Mapping
from typing import Any

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

    def all_running(self) -> frozenset[str]:
        """As they were a moment ago."""
        return frozenset(self._machine.listed.read())

    def wake(self, token: str) -> None:
        """A token whose task has ended is no error."""
        self._machine.succeed(token)


class SimUpgradeExecutions:
    """`ports.UpgradeExecutions`: people and the upgrades themselves name these."""

    def __init__(self, machine: StateMachine | None) -> None:
        self._machine = machine

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """True when it runs, also with another input; False when a closed one holds the name."""
        return self._machine is not None and (self._machine.start(name, dict(document)) or self.running(name))

    def running(self, name: str) -> bool:
        """Whether it is open."""
        return self._machine is not None and name in self._machine.executions
