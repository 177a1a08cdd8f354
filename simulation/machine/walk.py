"""Path through one set of states: the whole machine, a branch of a Parallel state, an iteration of a Map.

It enters states, evaluates their fields, retries and catches. The calls of tasks and the execution belong to its `Run`.
Every callback is void once the walk has moved on without it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from leeward.model.times import format_instant
from simulation.expressions import UndefinedError, evaluate
from simulation.machine.attempt import Attempt, Finished
from simulation.machine.deciding import chosen, seconds_of
from simulation.machine.execution import (
    EXPRESSION,
    HEARTBEAT,
    TIMEOUT,
    TRANSITION,
    Execution,
    ExecutionOverError,
    StatesError,
    within_limit,
)
from simulation.machine.fan_out import Ended, FanOut
from simulation.machine.matching import catcher_for, next_delay
from simulation.machine.planning import Way, visit_of
from simulation.timeline import Timeline

LIMITS = ("TimeoutSeconds", "HeartbeatSeconds")
IN_A_ROW = 20  # states without a task that follow one another in the same moment


class Run(Protocol):
    """Interface of the execution that a walk needs. `say` writes history and raises ExecutionOverError when
    it is full.
    """

    timeline: Timeline
    random: Random
    execution: Execution
    context: Mapping[str, Any]

    def say(self, type_: str, name: str = "", error: str = "") -> None: ...
    def step(self, state: str) -> None: ...
    def attempt(self, state: str, finished: Finished) -> Attempt: ...
    def do(self, resource: str, arguments: Any, attempt: Attempt) -> None: ...


class Walk:
    """One walk. `done` receives the output of the last state, or the error that nothing caught."""

    def __init__(self, run: Run, way: Way, variables: Mapping[str, Any], done: Ended) -> None:
        self._run, self._way, self._done = run, way, done
        self._variables = dict(variables)
        self._name, self._entered, self._data = "", "", way.data
        self._definition: Mapping[str, Any] = {}
        self._turn = self._in_a_row = 0
        self._tried: dict[int, int] = {}
        self._attempt: Attempt | None = None
        self._fan: FanOut | None = None

    def begin(self) -> "Walk":
        """Enter the first state in a moment."""
        self._later(TRANSITION, lambda: self._enter(self._way.start, self._way.data))
        return self

    def abort(self) -> None:
        """Cancel the task or walks under way: their results count no more."""
        self._void()
        if self._definition.get("Type") in {"Task", "Map", "Parallel", "Wait"}:
            self._run.say(f"{self._definition['Type']}StateAborted", self._name)

    def _enter(self, name: str, data: Any) -> None:
        self._name, self._definition, self._data, self._tried = name, self._way.states[name], data, {}
        self._entered = format_instant(self._run.timeline.instant())
        self._run.step(name)
        self._run.say(f"{self._definition['Type']}StateEntered", name)
        self._do(self._definition)

    def _do(self, definition: Mapping[str, Any]) -> None:
        match definition["Type"]:
            case "Task" | "Map" | "Parallel":
                self._try()
            case "Choice":
                self._leave(chosen(definition, self._value), self._data)
            case "Pass":
                self._leave(definition, self._data)
            case "Wait":
                seconds = seconds_of(definition, self._value, self._run.timeline.instant())
                self._later(seconds, lambda: self._leave(definition, self._data))
            case "Succeed":
                self._leave(definition, self._data)
            case "Fail":
                said = (self._value(definition.get(field, "")) for field in ("Error", "Cause"))
                raise StatesError(*map(str, said))
            case other:
                raise NotImplementedError(f"state type {other}")

    def _try(self) -> None:
        self._turn += 1
        if self._definition["Type"] == "Task":
            self._try_task()
            return
        visit = visit_of(self._definition, self._data, self._value)
        self._run.say(f"{self._definition['Type']}StateStarted", self._name)
        self._fan = FanOut(
            len(visit.ways),
            at_once=visit.at_once,
            tolerated=visit.tolerated,
            begin=lambda number, ended: self._branch(visit.ways[number], ended),
            said=self._say_iteration,
            finished=self._guarded(self._gathered),
        )
        self._fan.go_on()

    def _branch(self, way: Way, ended: Ended) -> "Walk":
        way = replace(way, item=way.item or self._way.item)  # a branch inside an iteration knows the iteration's item
        return Walk(self._run, way, self._variables, self._guarded(ended)).begin()

    def _say_iteration(self, _number: int, what: str) -> None:
        if self._definition["Type"] == "Map":
            self._run.say(f"MapIteration{what}", self._name)

    def _gathered(self, outputs: Sequence[Any], error: StatesError | None) -> None:
        if error is not None:
            raise error
        self._run.say(f"{self._definition['Type']}StateSucceeded", self._name)
        self._succeed(within_limit(list(outputs), f"the output of {self._name}"))

    def _try_task(self) -> None:
        definition = self._definition
        attempt = self._attempt = self._run.attempt(self._name, self._guarded(self._answered))
        scope = self._scope(token=attempt.token)
        arguments = self._data  # within the limit, as the output of the state before
        if "Arguments" in definition:
            arguments = within_limit(
                self._value(definition["Arguments"], scope=scope), f"the arguments of {self._name}"
            )
        limits = [self._value(definition[field]) if field in definition else None for field in LIMITS]
        self._run.say("TaskScheduled", self._name)
        attempt.limit(*limits)
        self._run.do(definition["Resource"], arguments, attempt)

    def _answered(self, result: Any, error: StatesError | None) -> None:
        if error is not None:
            raise error
        within_limit(result, f"the result of {self._name}")
        self._run.say("TaskSucceeded", self._name)
        self._succeed(result)

    def _succeed(self, result: Any) -> None:
        self._void()
        self._leave(self._definition, result, scope=self._scope(result=result))

    def _failed(self, error: StatesError) -> None:
        self._say_failure(error.error)
        self._void()
        wait = next_delay(self._definition.get("Retry", ()), error.error, self._tried, self._run.random)
        if wait is not None:
            self._run.step(self._name)  # a retry is a transition too
            self._later(wait, self._try)
            return
        catcher = catcher_for(self._definition.get("Catch", ()), error.error)
        if catcher is None:
            self._arrive(None, error)
            return
        said = {"Error": error.error, "Cause": error.cause}
        try:
            self._leave(catcher, said, scope=self._scope(error=said))
        except StatesError as second:  # no Catch covers an error inside a Catch
            self._void()
            self._arrive(None, second)

    def _say_failure(self, error: str) -> None:
        kind = self._definition["Type"]
        if error == EXPRESSION:
            self._run.say("EvaluationFailed", self._name, error)
        elif kind == "Task":
            self._run.say("TaskTimedOut" if error in {TIMEOUT, HEARTBEAT} else "TaskFailed", self._name, error)
        if kind in {"Map", "Parallel"}:
            self._run.say(f"{kind}StateFailed", self._name, error)

    def _leave(self, by: Mapping[str, Any], default: Any, *, scope: Mapping[str, Any] | None = None) -> None:
        """Leave by the state itself, one of its choices or one of its catchers: each has Output, Assign and Next."""
        scope = scope or self._scope()
        output = self._value(by["Output"], scope=scope) if "Output" in by else default
        assigned = {name: self._value(field, scope=scope) for name, field in by.get("Assign", {}).items()}
        if "Output" in by:  # `default` was measured where it came from
            within_limit(output, f"the output of {self._name}")
        if assigned:
            self._variables |= within_limit(assigned, f"what {self._name} assigns")
        self._run.say(f"{self._definition['Type']}StateExited", self._name)
        if "Next" in by:
            self._go(by["Next"], output)
        else:
            self._void()
            self._arrive(output, None)

    def _arrive(self, output: Any, error: StatesError | None) -> None:
        self._definition = {}  # its last state has ended: there is nothing to abort
        self._done(output, error)

    def _go(self, state: str, data: Any) -> None:
        self._in_a_row += 1
        if self._way.states[state]["Type"] in {"Task", "Map", "Parallel"} or self._in_a_row > IN_A_ROW:
            self._in_a_row = 0
            self._later(TRANSITION, lambda: self._enter(state, data))
        else:
            self._enter(state, data)

    def _value(
        self, field: Any, item: Mapping[str, Any] | None = None, *, scope: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            return evaluate(field, scope or self._scope(item=item))
        except UndefinedError as error:
            raise StatesError(EXPRESSION, str(error)) from None

    def _scope(
        self, *, result: Any = None, error: Any = None, token: str = "", item: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """Return every name that an expression may use."""
        state = {"EnteredTime": self._entered, "Name": self._name, "RetryCount": sum(self._tried.values())}
        context = {**self._run.context, "State": state, "Task": {"Token": token}}
        if item or self._way.item:
            context["Map"] = item or self._way.item
        states = {"input": self._data, "context": context, "result": result, "errorOutput": error}
        return {**self._variables, "states": states}

    def _void(self) -> None:
        self._turn += 1
        if self._attempt is not None:
            self._attempt.cancel()
        if self._fan is not None:
            self._fan.abort()
        self._attempt = self._fan = None

    def _later(self, seconds: float, step: Callable[[], None]) -> None:
        self._run.timeline.after(seconds, self._guarded(step), f"{self._run.execution.name} goes on")

    def _guarded(self, step: Callable[..., None]) -> Callable[..., None]:
        """Return the step as a callback: void once the walk has moved on; its error becomes the state's."""
        turn = self._turn

        def run(*arguments: Any) -> None:
            if self._turn == turn and not self._run.execution.over:
                with suppress(ExecutionOverError):
                    self._attend(step, arguments)

        return run

    def _attend(self, step: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            step(*arguments)
        except StatesError as error:
            self._failed(error)
