"""State machines as a scenario runs them: the simulation's runner, or Step Functions behind its API.

A function `work` answers its payload, fails by the class that `fail` names, and sleeps as long as `sleep` says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

CUT_SHORT = {"ExecutionAborted", "ExecutionTimedOut"}


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How an execution ended; `history` holds event types, with the state's name where they carry one."""

    status: str
    output: Any
    error: str
    history: tuple[str, ...]


class MachineWorld(Protocol):
    """`pause` and `call` are the resources of tasks; `work` is the function's name in them."""

    work: str

    def machine(self, states: Mapping[str, Any], **top: Any) -> str:
        """Create one; its name. The first state is where it starts."""
        ...

    def start(self, machine: str, name: str, data: Any) -> bool:
        """StartExecution; False for ExecutionAlreadyExists."""
        ...

    def stop(self, machine: str, name: str) -> None:
        """StopExecution."""
        ...

    def end(self, machine: str, name: str) -> End:
        """Wait for its end."""
        ...

    def token(self, key: str) -> str:
        """Wait for the token that a pause has handed over under this key."""
        ...

    def hand_over_fails(self, key: str) -> None:
        """Let the next pause under this key find its record changed."""
        ...

    def succeed(self, token: str, output: Any) -> bool:
        """SendTaskSuccess; False when no task waits for it."""
        ...

    def fail(self, token: str, error: str, cause: str) -> bool:
        """SendTaskFailure; False when no task waits for it."""
        ...


def reported(types: list[tuple[str, str]]) -> tuple[str, ...]:
    """Of (type, state name): entered and exited states by name, everything else by its type. Which states were under
    way when an execution was stopped or ran out of time is left out: the emulator does not report it.
    """
    after = [kind for kind, _ in types[1:]] + [""]
    kept = [
        one for one, then in zip(types, after, strict=True) if not (one[0].endswith("Aborted") and then in CUT_SHORT)
    ]
    return tuple(f"{kind} {name}" if kind.endswith(("StateEntered", "StateExited")) else kind for kind, name in kept)
