"""The simulation's state machines, with a scripted function and a table of one attribute."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from simulation.invocations import Ended
from simulation.machine import Execution, StateMachine, StepFunctions
from simulation.timeline import Timeline
from tests.contract.worlds.machines import End, reported

PATIENCE = 3600.0  # virtual seconds


class SimulatedMachines:
    """A `MachineWorld` in virtual time."""

    work = "work"

    def __init__(self) -> None:
        self._timeline, self._account = Timeline(), StepFunctions()
        self._machines: dict[str, StateMachine] = {}
        self._ended: dict[tuple[str, str], Execution] = {}
        self._tokens: dict[str, str] = {}
        self._refused: set[str] = set()

    def machine(self, states: Mapping[str, Any], **top: Any) -> str:
        name = f"machine-{len(self._machines)}"

        def ended(execution: Execution) -> None:
            self._ended[name, execution.name] = execution

        self._machines[name] = StateMachine(
            {"StartAt": next(iter(states)), "States": states, **top},
            self._timeline,
            Random(1),
            invoke=self._invoke,
            pause=self._pause,
            ended=ended,
            name=name,
            account=self._account,
        )
        return name

    def start(self, machine: str, name: str, data: Any) -> bool:
        return self._machines[machine].start(name, data)

    def stop(self, machine: str, name: str) -> None:
        assert self._machines[machine].stop(name)

    def end(self, machine: str, name: str) -> End:
        execution = self._until(lambda: self._ended.get((machine, name)))
        history = reported([(event.type, event.name) for event in execution.history])
        return End(status=execution.status, output=execution.output, error=execution.error, history=history)

    def token(self, key: str) -> str:
        return str(self._until(lambda: self._tokens.get(key)))

    def hand_over_fails(self, key: str) -> None:
        self._refused.add(key)

    def succeed(self, token: str, output: Any) -> bool:
        return self._account.succeed(token, output)

    def fail(self, token: str, error: str, cause: str) -> bool:
        return self._account.fail(token, error, cause)

    def _until(self, condition: Callable[[], Any]) -> Any:
        end = self._timeline.now() + PATIENCE
        while not (found := condition()):
            assert self._timeline.now() < end, "it never came"
            self._timeline.run_until(self._timeline.now() + 0.1)
        return found

    def _invoke(self, _function: str, payload: Mapping[str, Any], done: Callable[[Ended], None]) -> None:
        error = payload.get("fail", "")
        answer = Ended(error=error, cause="asked to") if error else Ended(result=dict(payload))
        self._timeline.after(0.1 + payload.get("sleep", 0), lambda: done(answer), "the function's answer")

    def _pause(self, arguments: Mapping[str, Any]) -> str:
        key = arguments["Key"]["pk"]["S"]
        if key in self._refused:
            return "DynamoDb.ConditionalCheckFailedException"
        self._tokens[key] = arguments["ExpressionAttributeValues"][":t"]["S"]
        return ""
