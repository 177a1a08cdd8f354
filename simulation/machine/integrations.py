"""Calls of Task states: functions, other state machines, SDK actions; a task ends with the answer of its call, with a
task token, or with its child execution.

Resources, results and errors are those of the Step Functions developer guide, "Integrating services": `.sync:2` returns
the child's output as JSON, and a child that fails is States.TaskFailed with the child's description as its cause."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from simulation.invocations import Ended
from simulation.machine.account import StepFunctions
from simulation.machine.attempt import Attempt
from simulation.machine.execution import TASK_FAILED, TRANSITION, Execution, StatesError
from simulation.timeline import Timeline

if TYPE_CHECKING:
    from simulation.machine.run import MachineRun

FOR_TOKEN = "waitForTaskToken"
START_EXECUTION = {"states:startExecution": "StepFunctions", "sfn:startExecution": "Sfn"}


class Integrations:
    """Calls of one machine's tasks.

    `invoke`: calls a function, with its payload and the callback of its end; `pause`: makes the write by which a pause
    publishes its task token, and returns the name of its error, or an empty text.
    """

    def __init__(
        self,
        account: StepFunctions,
        invoke: Callable[[str, Mapping[str, Any], Callable[[Ended], None]], None],
        pause: Callable[[Mapping[str, Any]], str],
    ) -> None:
        self._account, self._invoke, self._pause = account, invoke, pause

    def begin(self, run: "MachineRun", resource: str, arguments: Any, attempt: Attempt) -> None:
        """Make the call. Raises StatesError when it is refused at once."""
        action, _, pattern = resource.partition(":states:::")[2].removeprefix("aws-sdk:").partition(".")
        answer: Callable[[Any], None] = attempt.succeed
        if pattern == FOR_TOKEN:
            self._account.wait_for(attempt)
            answer = _ignore
        run.say("TaskStarted", attempt.state)
        if action == "lambda:invoke":
            self._invoke(arguments["FunctionName"], arguments.get("Payload", {}), _reply(attempt, answer))
        elif action in START_EXECUTION:
            self._start(run, arguments, attempt, START_EXECUTION[action], pattern, answer)
        elif pattern == FOR_TOKEN:
            if error := self._pause(arguments):
                raise StatesError(error, "the conditional request failed")
        else:
            answer(self._answer_token(action, arguments) or self._account.call(action, arguments))
        if pattern and not attempt.over:
            run.say("TaskSubmitted", attempt.state)

    def _start(
        self,
        run: "MachineRun",
        arguments: Mapping[str, Any],
        attempt: Attempt,
        service: str,
        pattern: str,
        answer: Callable[[Any], None],
    ) -> None:
        machine = self._account.machines.get(arguments["StateMachineArn"])
        if machine is None:
            raise StatesError(f"{service}.StateMachineDoesNotExistException", arguments["StateMachineArn"])
        name = arguments.get("Name") or self._account.fresh_name()
        child = machine.begin(name, arguments.get("Input", {}))
        if child is None:
            raise StatesError(f"{service}.ExecutionAlreadyExistsException", f"Execution Already Exists: {name}")
        if pattern.startswith("sync"):
            attempt.on_cancel = partial(machine.stop, name)
            child.on_end.append(_listener(run.timeline, attempt, whole=pattern == "sync:2"))
        else:
            answer({"ExecutionArn": child.execution.arn, "StartDate": _milliseconds(child.execution.started)})

    def _answer_token(self, action: str, arguments: Mapping[str, Any]) -> Any:
        """Make one of the three calls that answer a waiting task by its token; return None for any other action."""
        match action:
            case "sfn:sendTaskSuccess":
                waiting = self._account.succeed(arguments["TaskToken"], _parsed(arguments.get("Output", {})))
            case "sfn:sendTaskFailure":
                error = (arguments.get("Error", ""), arguments.get("Cause", ""))
                waiting = self._account.fail(arguments["TaskToken"], *error)
            case "sfn:sendTaskHeartbeat":
                waiting = self._account.heartbeat(arguments["TaskToken"])
            case _:
                return None
        if not waiting:
            raise StatesError("Sfn.TaskTimedOutException", "Provided task does not exist anymore")
        return {}


def _ignore(_result: Any) -> None:
    """Ignore the result of the call: the task ends with its token."""


def _reply(attempt: Attempt, answer: Callable[[Any], None]) -> Callable[[Ended], None]:
    def done(ended: Ended) -> None:
        if ended.error:
            attempt.fail(StatesError(ended.error, ended.cause))
        else:
            answer({"Payload": ended.result, "StatusCode": 200})

    return done


def _listener(timeline: Timeline, attempt: Attempt, *, whole: bool) -> Callable[[Execution], None]:
    """Return the callback of the child's end, which ends the parent's task one transition later. `whole`: the output as
    JSON, not as text.
    """

    def ended(child: Execution) -> None:
        timeline.after(TRANSITION, lambda: _child_ended(child, attempt, whole), "child ended")

    return ended


def _child_ended(child: Execution, attempt: Attempt, whole: bool) -> None:
    description = _described(child)
    if child.status == "SUCCEEDED":
        output = child.output if whole else json.dumps(child.output)
        attempt.succeed({**description, "Output": output, "OutputDetails": {"Included": True}})
    else:
        attempt.fail(StatesError(TASK_FAILED, json.dumps(description)))


def _described(child: Execution) -> dict[str, Any]:
    """Return the answer of DescribeExecution, with the field names that an optimized integration uses."""
    failure = {"Error": child.error, "Cause": child.cause}
    return {
        **{name: text for name, text in failure.items() if text},
        "ExecutionArn": child.arn,
        "Input": json.dumps(child.input),
        "InputDetails": {"Included": True},
        "Name": child.name,
        "StartDate": _milliseconds(child.started),
        "StateMachineArn": child.machine,
        "Status": child.status,
        "StopDate": _milliseconds(child.stopped),
    }


def _milliseconds(moment: float) -> int:
    return round(moment * 1000)


def _parsed(output: Any) -> Any:
    return json.loads(output) if isinstance(output, str) else output
