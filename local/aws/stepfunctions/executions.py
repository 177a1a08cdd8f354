"""Whole executions: idempotent starts, top-level time-outs, final states that never change, status events and history
numbering.

The rules are those of the API references of StartExecution and StopExecution and of the documented status event.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ministack.core.responses import error_response_json, get_account_id, get_region, json_response, now_iso
from ministack.services import stepfunctions as machine

from local.aws.outbox import Event, Outbox
from local.aws.pins import expect_parameters
from local.aws.stepfunctions import history, running
from local.aws.stepfunctions.clock import ScaledClock
from local.aws.timeline import Timeline

_NAME = re.compile(r"^[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}$")
_CHECK_SECONDS = 0.1
_REDRIVABLE = {"FAILED", "TIMED_OUT", "ABORTED"}


class Executions:
    """Patches around ministack's execution records."""

    def __init__(self, outbox: Outbox, clock: ScaledClock) -> None:
        self._outbox = outbox
        self._clock = clock
        self._lock = threading.RLock()
        self._deadlines: dict[str, tuple[float, dict[str, Any]]] = {}

    def install(self, timeline: Timeline) -> None:
        """Patch starting, running, failing, stopping, numbering and notifying."""
        expect_parameters("ministack", machine._start_execution, "data")
        expect_parameters("ministack", machine._run_execution, "exec_arn")
        expect_parameters("ministack", machine._fail_execution, "execution", "error", "cause")
        expect_parameters("ministack", machine._stop_execution, "data")
        expect_parameters("ministack", machine._add_event, "execution", "event_type", "details")
        expect_parameters("ministack", machine._emit_execution_status_event, "execution")
        machine._start_execution = self._start(machine._start_execution)
        machine._run_execution = self._run(machine._run_execution)
        machine._fail_execution = self._fail(machine._fail_execution)
        machine._stop_execution = self._locked(machine._stop_execution)
        machine._add_event = history.complete(machine._add_event, self._lock)
        machine._emit_execution_status_event = self._emit
        timeline.every(_CHECK_SECONDS, self._time_out)

    def _start(self, original: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
        """Start an execution. Same name and input while running: the same execution. A closed one, or other input:
        refused.
        """

        def start(data: Mapping[str, Any]) -> Any:
            name = data.get("name")
            if name is not None and not _NAME.match(name):
                return error_response_json("InvalidName", f"Invalid Name: '{name}'", 400)
            with self._lock:
                existing = _execution_of(data) if name else None
                if existing is not None:
                    same = existing["status"] == "RUNNING" and existing["input"] == data.get("input", "{}")
                    if same:
                        answer = {"executionArn": existing["executionArn"], "startDate": existing["startDate"]}
                        return json_response(answer)
                    message = f"Execution Already Exists: '{existing['executionArn']}'"
                    return error_response_json("ExecutionAlreadyExists", message, 400)
                return original(data)

        return start

    def _run(self, original: Callable[[str], None]) -> Callable[[str], None]:
        def run(exec_arn: str) -> None:
            execution = machine._executions.get(exec_arn)
            if execution is None:
                return
            before = running.current_execution.set(execution)
            execution["events"][0].setdefault("previousEventId", 0)
            limit = _time_limit(execution)
            if limit is not None:
                self._deadlines[exec_arn] = (self._clock.now() + limit, execution)
            try:
                original(exec_arn)
            except running.ExecutionEnded:
                pass
            finally:
                self._deadlines.pop(exec_arn, None)
                running.current_execution.reset(before)

        return run

    def _fail(self, original: Callable[..., None]) -> Callable[..., None]:
        """Fail an execution, unless it has ended: it keeps its final state, whatever its threads still do."""

        @functools.wraps(original)
        def fail(execution: dict[str, Any], error: str, cause: str) -> None:
            with self._lock:
                if execution["status"] == "RUNNING":
                    original(execution, error, cause)

        return fail

    def _locked(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(original)
        def call(data: Any) -> Any:
            with self._lock:
                return original(data)

        return call

    def _time_out(self) -> None:
        now = self._clock.now()
        for arn, (deadline, execution) in list(self._deadlines.items()):
            if now < deadline:
                continue
            self._deadlines.pop(arn, None)
            with self._lock:
                if execution["status"] != "RUNNING":
                    continue
                execution.update(status="TIMED_OUT", stopDate=now_iso(), error="States.Timeout", cause=None)
                machine._add_event(execution, "ExecutionTimedOut", {"executionTimedOutEventDetails": {}})
                self._emit(execution)

    def _emit(self, execution: Mapping[str, Any]) -> None:
        if execution.get("sync"):
            return
        region, account = execution["executionArn"].split(":")[3:5]
        self._outbox.emit(
            Event(
                source="aws.states",
                detail_type="Step Functions Execution Status Change",
                detail=_detail(execution),
                account=account,
                region=region,
                resources=(execution["executionArn"],),
            )
        )


def _execution_of(data: Mapping[str, Any]) -> dict[str, Any] | None:
    arn = machine._resolve_state_machine_arn(str(data.get("stateMachineArn", "")).split("#")[0])
    if arn is None:
        return None
    name = machine._state_machines[arn]["name"]
    prefix = f"arn:aws:states:{get_region()}:{get_account_id()}:execution"
    found: dict[str, Any] | None = machine._executions.get(f"{prefix}:{name}:{data['name']}")
    return found


def _time_limit(execution: Mapping[str, Any]) -> float | None:
    record = machine._state_machines.get(execution["stateMachineArn"])
    try:
        limit = json.loads(record["definition"]).get("TimeoutSeconds") if record else None
    except json.JSONDecodeError:
        return None
    return None if limit is None else float(limit)


def _detail(execution: Mapping[str, Any]) -> dict[str, Any]:
    status = execution["status"]
    redrivable = status in _REDRIVABLE
    return {
        "executionArn": execution["executionArn"],
        "stateMachineArn": execution["stateMachineArn"],
        "name": execution["name"],
        "status": status,
        "startDate": _milliseconds(execution.get("startDate")),
        "stopDate": _milliseconds(execution.get("stopDate")),
        "input": execution.get("input"),
        "output": execution.get("output") if status == "SUCCEEDED" else None,
        "inputDetails": {"included": True},
        "outputDetails": {"included": True} if status == "SUCCEEDED" else None,
        "error": execution.get("error") if status in ("FAILED", "ABORTED") else None,
        "cause": execution.get("cause") if status in ("FAILED", "ABORTED") else None,
        "stateMachineVersionArn": None,
        "stateMachineAliasArn": None,
        "redriveCount": 0,
        "redriveDate": None,
        "redriveStatus": "REDRIVABLE" if redrivable else "NOT_REDRIVABLE",
        "redriveStatusReason": None if redrivable else f"Execution is {status} and cannot be redriven",
    }


def _milliseconds(stamp: str | None) -> int | None:
    if not stamp:
        return None
    return int(datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000)
