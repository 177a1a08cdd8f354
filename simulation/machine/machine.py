"""One state machine and its executions: starting by name, stopping, and the status of closed ones."""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from simulation.invocations import Ended
from simulation.machine.account import StepFunctions
from simulation.machine.execution import Execution, within_limit
from simulation.machine.integrations import Integrations
from simulation.machine.run import MachineRun
from simulation.open_index import OpenIndex
from simulation.timeline import Timeline

Invoke = Callable[[str, Mapping[str, Any], Callable[[Ended], None]], None]
Pause = Callable[[Mapping[str, Any]], str]  # answers the name of an error, empty when it went through

REMEMBERED = 90 * 86400.0  # seconds that a closed name is refused


class StateMachine:
    """One state machine. `executions` holds the open ones, `closed` the status of the others by name. `ended` receives
    each end.

    `invoke` runs functions; `pause` makes the SDK call of a task that waits for its token. Machines of one `account`
    start each other and share their tokens. `transitions` counts retries too, as the bill does.
    """

    def __init__(
        self,
        definition: Mapping[str, Any],
        timeline: Timeline,
        random: Random,
        *,
        invoke: Invoke,
        pause: Pause,
        ended: Callable[[Execution], None],
        name: str = "machine",
        account: StepFunctions | None = None,
    ) -> None:
        self._definition, self._timeline, self._random = definition, timeline, random
        self.account = account or StepFunctions()
        self.arn = self.account.add(name, self)
        self._integrations = Integrations(self.account, invoke, pause)
        self.executions: dict[str, Execution] = {}
        self.listed = OpenIndex()  # as ListExecutions lists them
        self._runs: dict[str, MachineRun] = {}
        self.closed: dict[str, str] = {}
        self.closed_ever = 0
        self._ends: deque[tuple[float, str]] = deque()
        self.transitions = 0
        self._ended = ended

    def start(self, name: str, data: Any) -> bool:
        """Run StartExecution: True when it runs, also from before with the same input; False for
        ExecutionAlreadyExists: another input while it is open, or a closed one holds the name. Raises StatesError
        (States.DataLimitExceeded).
        """
        return self.begin(name, data) is not None

    def begin(self, name: str, data: Any) -> MachineRun | None:
        """Start an execution likewise, for a caller that waits for its end; None for ExecutionAlreadyExists."""
        if name in self.executions:
            return self._runs[name] if self.executions[name].input == data else None
        if name in self.closed:
            return None
        within_limit(data, "the input")
        arn = f"{self.arn.replace(':stateMachine:', ':execution:')}:{name}"
        execution = Execution(name=name, arn=arn, machine=self.arn, input=data, started=self._timeline.now())
        run = MachineRun(
            execution,
            self._definition,
            self._timeline,
            self._random,
            account=self.account,
            integrations=self._integrations,
            count=self._count,
        )
        run.on_end.append(self._close)
        self.executions[name], self._runs[name] = execution, run
        self.listed.put(name, is_open=True)
        run.begin()
        return run

    def stop(self, name: str, error: str = "", cause: str = "") -> bool:
        """Run StopExecution: no Catch sees it. False when it does not run."""
        if name not in self.executions:
            return False
        self._runs[name].end("ABORTED", error=error, cause=cause)
        return True

    def succeed(self, token: str) -> bool:
        """Run SendTaskSuccess with an empty object; False when no task waits for the token."""
        return self.account.succeed(token)

    def _close(self, execution: Execution) -> None:
        del self.executions[execution.name], self._runs[execution.name]
        self.listed.put(execution.name, is_open=False)
        self.closed[execution.name] = execution.status
        self.closed_ever += 1
        now = self._timeline.now()
        self._ends.append((now, execution.name))
        while self._ends[0][0] < now - REMEMBERED:
            self.closed.pop(self._ends.popleft()[1], None)
        self._ended(execution)

    def _count(self) -> None:
        self.transitions += 1
