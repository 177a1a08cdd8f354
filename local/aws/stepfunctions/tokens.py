"""Task tokens: a ``.waitForTaskToken`` task first makes its call, which may fail it, then pauses until it is answered.

Replaces ministack's callback task, which swallows a failing Lambda, knows no heartbeats and scales no time-out.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from ministack.core.responses import error_response_json
from ministack.services import stepfunctions as machine

from local.aws.pins import expect_parameters, replace
from local.aws.stepfunctions import running
from local.aws.stepfunctions.clock import ScaledClock

_KEPT_TOKENS = 20_000
_FOREVER = 99_999_999.0


class Tokens:
    """Pauses of tasks, and the tokens whose task is over."""

    def __init__(self, clock: ScaledClock) -> None:
        self._clock = clock
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def install(self) -> None:
        """Patch the callback task and the three calls that answer it."""
        expect_parameters("ministack", machine._invoke_with_callback, "resource", "input_data", "token", "state_def")
        answers = ("_send_task_success", "_send_task_failure", "_send_task_heartbeat")
        for name in answers:
            expect_parameters("ministack", getattr(machine, name), "data")
        replace(machine, **{name: self._answering(getattr(machine, name)) for name in answers})
        machine._invoke_with_callback = self.invoke

    def invoke(self, resource: str, input_data: Any, token: str, state: Mapping[str, Any]) -> Any:
        """Make the call, then wait for its token; the time-out counts from the call on."""
        started = self._clock.now()
        answer: dict[str, Any] = {"event": threading.Event(), "result": None, "error": None, "heartbeat": None}
        answer["execution"] = running.current_execution.get()
        machine._task_tokens[token] = answer
        try:
            machine._invoke_resource(resource.replace(".waitForTaskToken", ""), input_data)
            _submitted(resource)
            self._wait(answer, started, state)
        finally:
            machine._task_tokens.pop(token, None)
            self._remember(token)
        if answer["error"]:
            raise machine._ExecutionError(answer["error"].get("Error", "TaskFailed"), answer["error"].get("Cause", ""))
        return _parsed(answer["result"])

    def _wait(self, answer: Mapping[str, Any], started: float, state: Mapping[str, Any]) -> None:
        deadline = started + float(state.get("TimeoutSeconds", _FOREVER))
        patience = float(state.get("HeartbeatSeconds", _FOREVER))
        seen, beat_by = answer["heartbeat"], started + patience
        while not answer["event"].wait(self._clock.slice_until(min(deadline, beat_by))):
            running.check()
            now = self._clock.now()
            if answer["heartbeat"] != seen:
                seen, beat_by = answer["heartbeat"], now + patience
            if now >= deadline:
                raise machine._ExecutionError("States.Timeout", "")
            if now >= beat_by:
                raise machine._ExecutionError("States.HeartbeatTimeout", "")

    def _answering(self, original: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
        def answer(data: Mapping[str, Any]) -> Any:
            token = str(data.get("taskToken"))
            with self._lock:
                waiting = machine._task_tokens.get(token)
                if token in self._ended or (waiting is not None and _is_over(waiting)):
                    message = "Task Timed Out: 'Provided task does not exist anymore'"
                    return error_response_json("TaskTimedOut", message, 400)
                return original(data)

        return answer

    def _remember(self, token: str) -> None:
        with self._lock:
            self._ended[token] = None
            while len(self._ended) > _KEPT_TOKENS:
                self._ended.popitem(last=False)


def _is_over(waiting: Mapping[str, Any]) -> bool:
    """Return whether the task is answered already, or its execution has ended and its thread has not noticed yet."""
    execution = waiting.get("execution")
    return bool(waiting["event"].is_set() or (execution is not None and execution["status"] != "RUNNING"))


def _submitted(resource: str) -> None:
    execution = running.current_execution.get()
    if execution is not None:
        details = {"resourceType": "states", "resource": resource}
        machine._add_event(execution, "TaskSubmitted", {"taskSubmittedEventDetails": details})


def _parsed(result: Any) -> Any:
    try:
        return json.loads(result) if isinstance(result, str) else result
    except json.JSONDecodeError:
        return result
