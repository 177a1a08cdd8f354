"""Runs a state machine definition (Amazon States Language, JSONata) in virtual time, as Step Functions does.

Task (function, pause by task token), Choice, Pass, Wait, Succeed, Fail; Retry with back-off and jitter, Catch,
time-outs of tasks and of the whole machine, StopExecution, an execution history. What a task does is its caller's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from leeward.model.times import format_instant
from simulation.expressions import UndefinedError, evaluate
from simulation.invocations import Ended
from simulation.timeline import Entry, Timeline

TRANSITION = 0.05  # seconds between two states
HISTORY = 25_000  # events: Step Functions ends an execution that has more

Invoke = Callable[[str, Mapping[str, Any], Callable[[Ended], None]], None]
Pause = Callable[[Mapping[str, Any]], str]  # answers the name of an error, empty when it went through


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """One event as GetExecutionHistory names it."""

    at: float
    type: str
    name: str = ""
    error: str = ""


@dataclass(slots=True, kw_only=True)
class Execution:
    """One run. `turn` grows with everything that makes older callbacks void."""

    name: str
    input: Any
    started: float
    status: str = "RUNNING"
    state: str = ""
    entered: str = ""
    data: Any = None
    output: Any = None
    error: str = ""
    cause: str = ""
    turn: int = 0
    tries: dict[int, int] = field(default_factory=dict)
    token: str = ""
    timers: list[Entry] = field(default_factory=list)
    history: list[HistoryEvent] = field(default_factory=list)


class StateMachine:
    """`executions` holds the open ones, `closed` the names of the others. `ended` hears of each end."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        timeline: Timeline,
        random: Random,
        *,
        invoke: Invoke,
        pause: Pause,
        ended: Callable[[Execution], None],
    ) -> None:
        self._definition, self._timeline, self._random = definition, timeline, random
        self._invoke, self._pause, self._ended = invoke, pause, ended
        self.executions: dict[str, Execution] = {}
        self.closed: dict[str, str] = {}
        self.transitions = 0
        self._tokens = 0

    def start(self, name: str, data: Any) -> bool:
        """StartExecution: True when it runs, also from before; False when a closed one holds the name."""
        if name in self.executions:
            return True
        if name in self.closed:
            return False
        execution = Execution(name=name, input=data, started=self._timeline.now())
        self.executions[name] = execution
        self._say(execution, "ExecutionStarted")
        seconds = self._definition.get("TimeoutSeconds")
        if seconds:
            whole = self._timeline.after(seconds, lambda: self._end(execution, "TIMED_OUT"), f"{name} time-out")
            execution.timers.append(whole)
        self._soon(execution, TRANSITION, lambda: self._enter(execution, self._definition["StartAt"], data))
        return True

    def stop(self, name: str) -> bool:
        """StopExecution: no Catch sees it. False when it does not run."""
        execution = self.executions.get(name)
        if execution is None:
            return False
        self._end(execution, "ABORTED")
        return True

    def succeed(self, token: str) -> bool:
        """SendTaskSuccess with an empty object; False when no task waits for the token."""
        execution = next((e for e in self.executions.values() if e.token == token), None)
        if execution is None:
            return False
        self._soon(execution, 0, lambda: self._succeeded(execution, {}))
        execution.token = ""
        return True

    def _enter(self, execution: Execution, state: str, data: Any) -> None:
        self.transitions += 1
        execution.state, execution.data, execution.tries = state, data, {}
        execution.entered = format_instant(self._timeline.instant())
        definition = self._state(execution)
        self._say(execution, f"{definition['Type']}StateEntered", state)
        if len(execution.history) > HISTORY:
            self._end(execution, "FAILED", error="States.Runtime", cause="the history is too long")
            return
        try:
            self._do(execution, definition)
        except UndefinedError as error:
            self._failed(execution, "States.QueryEvaluationError", str(error))

    def _do(self, execution: Execution, definition: Mapping[str, Any]) -> None:
        states = self._states(execution)
        match definition["Type"]:
            case "Task":
                self._try(execution)
            case "Choice":
                self._go(execution, choose(definition, states), execution.data)
            case "Pass":
                self._go(execution, definition["Next"], evaluate(definition.get("Output", execution.data), states))
            case "Wait":
                seconds = evaluate(definition["Seconds"], states)
                self._soon(execution, seconds, lambda: self._go(execution, definition["Next"], execution.data))
            case "Succeed":
                self._end(execution, "SUCCEEDED", output=execution.data)
            case "Fail":
                cause = evaluate(definition.get("Cause", ""), states)
                self._end(execution, "FAILED", error=definition.get("Error", ""), cause=cause)
            case other:
                raise NotImplementedError(f"state type {other}")

    def _go(self, execution: Execution, state: str, data: Any) -> None:
        self._say(execution, f"{self._state(execution)['Type']}StateExited", execution.state)
        if self._definition["States"][state]["Type"] == "Task":
            self._soon(execution, TRANSITION, lambda: self._enter(execution, state, data))
        else:
            self._enter(execution, state, data)

    def _try(self, execution: Execution) -> None:
        definition = self._state(execution)
        execution.turn += 1
        turn = execution.turn
        self._tokens += 1
        token = f"{execution.name}/{self._tokens}"
        states = self._states(execution, token=token)
        arguments = evaluate(definition["Arguments"], states)
        seconds = evaluate(definition.get("TimeoutSeconds", 99999999), states)
        timer = self._timeline.after(seconds, lambda: self._task_timed_out(execution, turn), "task time-out")
        self._timers(execution, timer)
        self._say(execution, "TaskScheduled", execution.state)
        if definition["Resource"].endswith(".waitForTaskToken"):
            execution.token = token
            error = self._pause(arguments)
            if error:
                self._failed(execution, error, "the conditional request failed")
            return

        def done(ended: Ended) -> None:
            if execution.turn != turn or execution.status != "RUNNING":
                return
            if ended.error:
                self._failed(execution, ended.error, ended.cause)
            else:
                self._succeeded(execution, {"Payload": ended.result})

        self._invoke(arguments["FunctionName"], arguments["Payload"], done)

    def _task_timed_out(self, execution: Execution, turn: int) -> None:
        if execution.turn == turn:
            self._failed(execution, "States.Timeout", "")

    def _succeeded(self, execution: Execution, result: Any) -> None:
        definition = self._state(execution)
        self._say(execution, "TaskSucceeded", execution.state)
        self._void(execution)
        try:
            output = evaluate(definition.get("Output", result), self._states(execution, result=result))
        except UndefinedError as error:
            self._failed(execution, "States.QueryEvaluationError", str(error))
            return
        self._go(execution, definition["Next"], output)

    def _failed(self, execution: Execution, error: str, cause: str) -> None:
        definition = self._state(execution)
        kind = "TaskTimedOut" if error == "States.Timeout" else "TaskFailed"
        self._say(execution, kind, execution.state, error)
        self._void(execution)
        wait = self._retry(execution, definition, error)
        if wait is not None:
            self._soon(execution, wait, lambda: self._try(execution))
            return
        for catcher in definition.get("Catch", ()):
            if error in catcher["ErrorEquals"] or "States.ALL" in catcher["ErrorEquals"]:
                said = {"Error": error, "Cause": cause}
                output = evaluate(catcher.get("Output", said), self._states(execution, error=said))
                self._go(execution, catcher["Next"], output)
                return
        self._end(execution, "FAILED", error=error, cause=cause)

    def _retry(self, execution: Execution, definition: Mapping[str, Any], error: str) -> float | None:
        for number, retry in enumerate(definition.get("Retry", ())):
            if error in retry["ErrorEquals"] or "States.ALL" in retry["ErrorEquals"]:
                tried = execution.tries.get(number, 0)
                if tried >= retry.get("MaxAttempts", 3):
                    return None
                execution.tries[number] = tried + 1
                wait = retry.get("IntervalSeconds", 1) * retry.get("BackoffRate", 2.0) ** tried
                wait = min(wait, retry.get("MaxDelaySeconds", wait))
                return self._random.uniform(0, wait) if retry.get("JitterStrategy") == "FULL" else float(wait)
        return None

    def _end(self, execution: Execution, status: str, *, output: Any = None, error: str = "", cause: str = "") -> None:
        execution.status, execution.output, execution.error, execution.cause = status, output, error, cause
        self._void(execution)
        for timer in execution.timers:
            timer.cancel()
        del self.executions[execution.name]
        self.closed[execution.name] = status
        self._say(execution, "Execution" + status.title().replace("_", ""), error=error)
        self._ended(execution)

    def _void(self, execution: Execution) -> None:
        """What was under way no longer counts."""
        execution.turn += 1
        execution.token = ""
        for timer in execution.timers[1:]:
            timer.cancel()
        del execution.timers[1:]

    def _soon(self, execution: Execution, seconds: float, step: Callable[[], None]) -> None:
        turn = execution.turn

        def unless_void() -> None:
            if execution.turn == turn and execution.status == "RUNNING":
                step()

        self._timeline.after(seconds, unless_void, f"{execution.name} goes on")

    def _timers(self, execution: Execution, timer: Entry) -> None:
        if not execution.timers:  # a machine without a time-out of its own
            execution.timers.append(Entry(0, 0, None, ""))
        execution.timers.append(timer)

    def _state(self, execution: Execution) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._definition["States"][execution.state]
        return found

    def _states(
        self, execution: Execution, *, result: Any = None, error: Any = None, token: str = ""
    ) -> dict[str, Any]:
        context = {
            "Execution": {"Name": execution.name, "Input": execution.input},
            "State": {"EnteredTime": execution.entered, "Name": execution.state},
            "Task": {"Token": token},
        }
        return {"input": execution.data, "context": context, "result": result, "errorOutput": error}

    def _say(self, execution: Execution, type_: str, name: str = "", error: str = "") -> None:
        execution.history.append(HistoryEvent(at=self._timeline.now(), type=type_, name=name, error=error))


def choose(definition: Mapping[str, Any], states: Mapping[str, Any]) -> str:
    """The first choice whose condition holds, else the default."""
    for choice in definition["Choices"]:
        if evaluate(choice["Condition"], states) is True:
            return str(choice["Next"])
    return str(definition["Default"])
