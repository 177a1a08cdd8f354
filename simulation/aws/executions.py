"""`ports.executions.Executions` and `ports.executions.NamedExecutions` on the state machines' runner."""

from collections.abc import Mapping
from typing import Any

from leeward.model.termination import execution_name
from simulation.machine import StateMachine


class SimExecutions:
    """Executions of node termination, with the names that the product makes."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine

    def start(self, instance: str, attempt: int, unclaimed: Mapping[str, str] | None = None) -> bool:
        """Start an execution. True when it runs, also with an input that a manual start chose; False when a closed one
        holds the name.
        """
        name = execution_name(instance, attempt)
        begun = self._machine.start(name, {"instance": instance, "attempt": attempt, "v": 1, **(unclaimed or {})})
        return begun or self.running(instance, attempt)

    def running(self, instance: str, attempt: int) -> bool:
        """Return whether the execution is open."""
        return execution_name(instance, attempt) in self._machine.executions

    def all_running(self) -> frozenset[str]:
        """Return the names of the open executions as they were a moment ago."""
        return frozenset(self._machine.listed.read())

    def wake(self, token: str) -> None:
        """Answer a token; one whose task has ended is no error."""
        self._machine.succeed(token)


class SimNamedExecutions:
    """Executions that their starters name: operators, upgrades and fn disruption-planner."""

    def __init__(self, machine: StateMachine | None) -> None:
        self._machine = machine

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """Start an execution. True when it runs, also with another input; False when a closed one holds the name."""
        return self._machine is not None and (self._machine.start(name, dict(document)) or self.running(name))

    def running(self, name: str) -> bool:
        """Return whether the execution is open."""
        return self._machine is not None and name in self._machine.executions
