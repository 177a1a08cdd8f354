"""One execution at work: its walk, its history, its end."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from leeward.model.times import format_instant
from simulation.machine.account import StepFunctions
from simulation.machine.attempt import Attempt, Finished
from simulation.machine.execution import HISTORY, RUNTIME, Execution, ExecutionOverError, HistoryEvent, StatesError
from simulation.machine.integrations import Integrations
from simulation.machine.planning import Way
from simulation.machine.walk import Walk
from simulation.timeline import Entry, Timeline


class MachineRun:
    """Run of one execution. `on_end` are called with the execution once it has ended. `step` counts a transition of its
    machine.
    """

    def __init__(
        self,
        execution: Execution,
        definition: Mapping[str, Any],
        timeline: Timeline,
        random: Random,
        *,
        account: StepFunctions,
        integrations: Integrations,
        count: Callable[[], None],
    ) -> None:
        self.execution, self.timeline, self.random = execution, timeline, random
        self._account, self._integrations, self._count = account, integrations, count
        self.on_end: list[Callable[[Execution], None]] = []
        started = format_instant(timeline.instant())
        self.context: Mapping[str, Any] = {
            "Execution": {
                "Id": execution.arn,
                "Name": execution.name,
                "Input": execution.input,
                "StartTime": started,
            },
            "StateMachine": {"Id": execution.machine, "Name": execution.machine.rpartition(":")[2]},
        }
        way = Way(states=definition["States"], start=definition["StartAt"], data=execution.input)
        self._walk = Walk(self, way, {}, self._arrived)
        self._limit: Entry | None = None
        self._seconds = definition.get("TimeoutSeconds")

    def begin(self) -> None:
        """Write the first event; the first state is entered in a moment."""
        self.say("ExecutionStarted")
        if self._seconds:
            what = f"{self.execution.name} time-out"
            self._limit = self.timeline.after(self._seconds, lambda: self.end("TIMED_OUT"), what)
        self._walk.begin()

    def end(self, status: str, *, output: Any = None, error: str = "", cause: str = "") -> None:
        """End the execution now, once; tasks that it waited for are ended as far as Step Functions does that."""
        execution = self.execution
        if execution.over:
            return
        execution.status, execution.stopped = status, self.timeline.now()
        execution.output, execution.error, execution.cause = output, error, cause
        self._walk.abort()
        if self._limit is not None:
            self._limit.cancel()
        self._write("Execution" + status.title().replace("_", ""), error=error)
        for hear in self.on_end:
            hear(execution)

    def say(self, type_: str, name: str = "", error: str = "") -> None:
        """Write one event. The one before the last that fits fails the execution. Raises ExecutionOverError."""
        if len(self.execution.history) < HISTORY - 1:
            self._write(type_, name, error)
        elif not self.execution.over:
            self.end("FAILED", error=RUNTIME, cause=f"the history has reached {HISTORY} events")
            raise ExecutionOverError

    def step(self, state: str) -> None:
        """Record that a state is entered or tried again."""
        self.execution.state = state
        self._count()

    def attempt(self, state: str, finished: Finished) -> Attempt:
        """Create an attempt with a token of its own."""
        return Attempt(self.timeline, state, self._account.token(self.execution.name), finished)

    def do(self, resource: str, arguments: Any, attempt: Attempt) -> None:
        """Make the task's call. Raises StatesError when it is refused at once."""
        self._integrations.begin(self, resource, arguments, attempt)

    def _arrived(self, output: Any, error: StatesError | None) -> None:
        if error is None:
            self.end("SUCCEEDED", output=output)
        else:
            self.end("FAILED", error=error.error, cause=error.cause)

    def _write(self, type_: str, name: str = "", error: str = "") -> None:
        event = HistoryEvent(at=self.timeline.now(), type=type_, name=name, error=error)
        self.execution.history.append(event)
