"""History of an execution as GetExecutionHistory numbers and names it, where ministack's own is shorter.

A task is scheduled and started, one that waits for an answer is submitted as well, and one that took too long has timed
out rather than failed. Event types are those of the API reference of HistoryEvent.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from local.aws.stepfunctions import logs

TIME_OUTS = frozenset({"States.Timeout", "States.HeartbeatTimeout"})
Add = Callable[..., dict[str, Any]]


def complete(original: Add, lock: threading.RLock) -> Add:
    """Return an `_add_event` that links events, starts scheduled tasks, distinguishes time-outs from failures, and logs
    what the state machine's level wants.
    """

    @functools.wraps(original)
    def add(execution: dict[str, Any], event_type: str, details: Any = None) -> dict[str, Any]:
        with lock:
            event = _linked(original(execution, *_named(event_type, details)))
            added = [event]
            if event_type == "TaskScheduled":
                started = {"taskStartedEventDetails": dict(details["taskScheduledEventDetails"])}
                added.append(_linked(original(execution, "TaskStarted", started)))
        for each in added:
            logs.write(execution, each)
        return event

    return add


def _linked(event: dict[str, Any]) -> dict[str, Any]:
    event["previousEventId"] = event["id"] - 1
    return event


def _named(event_type: str, details: Any) -> tuple[str, Any]:
    failure: Mapping[str, Any] = (details or {}).get("taskFailedEventDetails", {})
    if event_type == "TaskFailed" and failure.get("error") in TIME_OUTS:
        return "TaskTimedOut", {"taskTimedOutEventDetails": dict(failure)}
    return event_type, details
