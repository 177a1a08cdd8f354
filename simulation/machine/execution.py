"""One run of a state machine as operators see it: status, output, history; the limits and the errors of
Step Functions."""

import json
from dataclasses import dataclass, field
from typing import Any

TRANSITION = 0.05  # seconds between two states
HISTORY = 25_000  # events: Step Functions ends an execution that has more
DATA = 256 * 1024  # bytes of the input or output of a state, a task or an execution

RUNTIME = "States.Runtime"
TIMEOUT = "States.Timeout"
HEARTBEAT = "States.HeartbeatTimeout"
DATA_LIMIT = "States.DataLimitExceeded"
NO_CHOICE = "States.NoChoiceMatched"
EXPRESSION = "States.QueryEvaluationError"
TOO_MANY_FAILED = "States.ExceedToleratedFailureThreshold"
TASK_FAILED = "States.TaskFailed"


class StatesError(Exception):
    """Failure of a state. `error` is the name that Retry and Catch compare."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


class ExecutionOverError(Exception):
    """End of the execution in the middle of a step: nothing of the step may happen any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """One event as GetExecutionHistory names it; `name` is the state's."""

    at: float
    type: str
    name: str = ""
    error: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Execution:
    """One run. `state` is the one entered last; `started` and `stopped` are seconds since 1970."""

    name: str
    arn: str
    machine: str
    input: Any
    started: float
    stopped: float = 0.0
    status: str = "RUNNING"
    state: str = ""
    output: Any = None
    error: str = ""
    cause: str = ""
    history: list[HistoryEvent] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """True if it has ended, in any way."""
        return self.status != "RUNNING"


def within_limit(value: Any, what: str) -> Any:
    """Return the same value. Raises StatesError (States.DataLimitExceeded) above 256 KiB of JSON in UTF-8."""
    size = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    if size > DATA:
        raise StatesError(DATA_LIMIT, f"{what} has {size} bytes, more than {DATA}")
    return value
