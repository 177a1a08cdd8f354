"""Walks node-termination's own definition over its own steps, with fakes for ports and time that jumps.

It knows the parts of the Amazon States Language that the definition uses: Task (function, pause by task token),
Choice, Succeed, Fail, Retry with its back-off, Catch and time-outs. jsonata evaluates, as in the emulator."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.asl import read_definition
from leeward.errors import RecordChangedError
from leeward.model.termination import execution_name
from leeward.model.times import format_instant
from leeward.termination import drain, steps
from leeward.termination.run import Run
from simulation.expressions import by_jsonata
from simulation.invocations import Ended
from tests.fakes.system import FakeSystem

DEFINITION = read_definition(Path("functions/leeward/termination/state_machine.asl.yaml"))
KNOWN = {**steps.STEPS, **drain.STEPS}
LONGEST = 5000  # transitions


class KilledError(Exception):
    """The function's process was killed: Step Functions sees Lambda.Unknown."""


@dataclass
class Walk:
    """How an execution went: the states it entered, its end, and what it said."""

    states: list[str] = field(default_factory=list)
    ended: str = ""
    output: Any = None
    error: str = ""
    cause: str = ""


@dataclass
class Walker:
    """`before(state, input)` runs before each state: tests break or change the world there.
    `killed` holds steps to be killed after their effects, once each.
    """

    system: FakeSystem
    before: Callable[[str, Any], None] = lambda _state, _input: None
    killed: list[str] = field(default_factory=list)

    def run(self, instance: str, attempt: int = 1, *, manual: str = "") -> Walk:
        """From StartAt to an end, in virtual time; at most LONGEST transitions."""
        name = manual or execution_name(instance, attempt)
        data: Any = {"instance": instance} if manual else {"instance": instance, "attempt": attempt, "v": 1}
        walk, state = Walk(), DEFINITION["StartAt"]
        for _ in range(LONGEST):
            walk.states.append(state)
            self.before(state, data)
            definition = DEFINITION["States"][state]
            context = self._context(name, state)
            match definition["Type"]:
                case "Succeed":
                    return self._end(walk, state, name, output=data)
                case "Fail":
                    cause = evaluate(definition["Cause"], data, context)
                    return self._end(walk, state, name, error=definition["Error"], cause=cause)
                case "Choice":
                    state = choose(definition, data, context)
                case "Task":
                    state, data = self._task(definition, data, context, name)
        raise AssertionError(f"no end after {LONGEST} transitions: … {walk.states[-12:]}")

    def _end(self, walk: Walk, state: str, name: str, **how: Any) -> Walk:
        walk.ended = state
        for key, value in how.items():
            setattr(walk, key, value)
        self.system.executions.open.discard(name)
        self.system.executions.closed.add(name)
        return walk

    def _context(self, name: str, state: str) -> dict[str, Any]:
        now = format_instant(self.system.clock.now())
        entered = {"EnteredTime": now, "Name": state}
        return {"Execution": {"Name": name}, "State": entered, "Task": {"Token": f"token-{name}-{now}"}}

    def _task(self, task: Mapping[str, Any], data: Any, context: Any, name: str) -> tuple[str, Any]:
        tries: dict[int, int] = {}
        while True:
            try:
                result = self._call(task, data, context, name)
            except Exception as error:  # noqa: BLE001  (Step Functions sees every error of a function)
                said = type(error).__name__
                named = {"KilledError": "Lambda.Unknown", "TimeoutError": "States.Timeout"}.get(said, said)
                named = "DynamoDb.ConditionalCheckFailedException" if named == "RecordChangedError" else named
                if self._again(task, named, tries):
                    continue
                return catch(task, named, Ended(error=named, cause=str(error)).reported().cause, data, context)
            return task["Next"], evaluate(task["Output"], data, context, result={"Payload": result})

    def _again(self, task: Mapping[str, Any], error: str, tries: dict[int, int]) -> bool:
        for number, retry in enumerate(task.get("Retry", ())):
            if error in retry["ErrorEquals"] and tries.get(number, 0) < retry["MaxAttempts"]:
                wait = retry["IntervalSeconds"] * retry["BackoffRate"] ** tries.get(number, 0)
                tries[number] = tries.get(number, 0) + 1
                self.system.clock.advance(seconds=min(wait, retry["MaxDelaySeconds"]))
                return True
        return False

    def _call(self, task: Mapping[str, Any], data: Any, context: Any, name: str) -> Any:
        arguments = evaluate(task["Arguments"], data, context)
        if task["Resource"].endswith(".waitForTaskToken"):
            return self._pause(arguments, evaluate(task["TimeoutSeconds"], data, context))
        payload = arguments["Payload"]
        result = KNOWN[payload["step"]](Run.from_json(payload["run"]), payload, self.system.ports).to_json()
        json.dumps(result)
        if payload["step"] in self.killed:
            self.killed.remove(payload["step"])
            raise KilledError(payload["step"])
        return result

    def _pause(self, arguments: Mapping[str, Any], seconds: int) -> Any:
        values = arguments["ExpressionAttributeValues"]
        instance = arguments["Key"]["pk"]["S"].removeprefix("termination#")
        token = values[":token"]["S"]
        assert seconds > 0
        record = self.system.claims.records[instance]
        if record.version != int(values[":version"]["N"]):
            raise RecordChangedError("the version moved on")
        self.system.claims.hand_over_token(instance, version=record.version, token=token)
        for _ in range(int(seconds)):
            if token in self.system.executions.woken:
                return {}
            self.system.clock.advance(seconds=1)
            self.before("(a second of a pause)", {"instance": instance})
        raise TimeoutError


def choose(definition: Mapping[str, Any], data: Any, context: Any) -> str:
    """The first choice whose condition holds, else the default."""
    for choice in definition["Choices"]:
        if evaluate(choice["Condition"], data, context) is True:
            return str(choice["Next"])
    return str(definition["Default"])


def catch(task: Mapping[str, Any], error: str, cause: str, data: Any, context: Any) -> tuple[str, Any]:
    """The first catcher that names the error."""
    for catcher in task["Catch"]:
        if error in catcher["ErrorEquals"] or "States.ALL" in catcher["ErrorEquals"]:
            said = {"Error": error, "Cause": cause}
            return catcher["Next"], evaluate(catcher["Output"], data, context, error=said)
    raise AssertionError(f"{error} goes uncaught")


def evaluate(value: Any, data: Any, context: Any, *, result: Any = None, error: Any = None) -> Any:
    """Every `{% … %}` inside, with `$states` as AWS binds it; an undefined expression is an error."""
    if isinstance(value, dict):
        return {key: evaluate(item, data, context, result=result, error=error) for key, item in value.items()}
    if not (isinstance(value, str) and value.startswith("{%")):
        return value
    states = {"input": data, "context": context, "result": result, "errorOutput": error}
    answer = by_jsonata(value.removeprefix("{%").removesuffix("%}").strip())({"states": states})
    if answer is None:
        raise AssertionError(f"{value} is undefined for {data}")
    return answer
