"""The state machines in memory: names only, nothing runs."""

from collections.abc import Mapping
from typing import Any

from leeward.model.termination import execution_name
from tests.fakes.calls import Calls


class FakeExecutions(Calls):
    """`open` and `closed` are execution names, `woken` the tokens, `started` what StartExecution was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[str] = set()
        self.closed: set[str] = set()
        self.started: list[str] = []
        self.woken: list[str] = []
        self.unclaimed: dict[str, Mapping[str, str]] = {}  # more input, by name

    def start(self, instance: str, attempt: int, unclaimed: Mapping[str, str] | None = None) -> bool:
        """Idempotent while the execution is open; False when a closed one holds the name."""
        self._call("start")
        name = execution_name(instance, attempt)
        self.started.append(name)
        if unclaimed is not None:
            self.unclaimed[name] = unclaimed
        if name in self.closed:
            return False
        self.open.add(name)
        return True

    def running(self, instance: str, attempt: int) -> bool:
        """Whether it is open."""
        self._call("running")
        return execution_name(instance, attempt) in self.open

    def all_running(self) -> frozenset[str]:
        """Without the real list's lag."""
        self._call("all_running")
        return frozenset(self.open)

    def wake(self, token: str) -> None:
        """A token whose task has ended is no error."""
        self._call("wake")
        self.woken.append(token)

    def end(self, instance: str, attempt: int = 1) -> None:
        """The execution succeeds, fails or is stopped: its name stays taken."""
        name = execution_name(instance, attempt)
        self.open.discard(name)
        self.closed.add(name)


class FakeNamedExecutions(Calls):
    """A state machine whose executions callers name: `open` and `closed` names, `started` with the documents."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[str] = set()
        self.closed: set[str] = set()
        self.started: list[tuple[str, Mapping[str, Any]]] = []

    def start(self, name: str, document: Mapping[str, Any]) -> bool:
        """Idempotent while the execution is open; False when a closed one holds the name."""
        self._call("start")
        self.started.append((name, document))
        if name in self.closed:
            return False
        self.open.add(name)
        return True

    def running(self, name: str) -> bool:
        """Whether it is open."""
        self._call("running")
        return name in self.open
