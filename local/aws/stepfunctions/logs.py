"""Log lines of executions, at the level that their state machine's logging configuration names.

A line is an event of the history, in the fields that the developer guide lists ("Using CloudWatch Logs to log execution
history"). ministack keeps the configuration and writes nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ministack.services import cloudwatch_logs
from ministack.services import stepfunctions as machine

FAILURES = ("Failed", "TimedOut", "Aborted", "FailStateEntered")  # ends of the event types of level ERROR
STREAM = "states/local"


def write(execution: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """Write the event to the state machine's log group, where the level wants it and the group is there."""
    record = machine._state_machines.get(execution["stateMachineArn"]) or {}
    configuration = _lower(record.get("loggingConfiguration") or {})
    level = configuration.get("level", "OFF")
    if level == "OFF" or (level == "ERROR" and not event["type"].endswith(FAILURES)):
        return
    message = json.dumps(_line(execution, event, data=bool(configuration.get("includeExecutionData"))))
    for destination in configuration.get("destinations", ()):
        arn = destination["cloudWatchLogsLogGroup"]["logGroupArn"]
        group = arn.partition(":log-group:")[2].removesuffix(":*")
        cloudwatch_logs._create_log_stream({"logGroupName": group, "logStreamName": STREAM})  # refused where it exists
        lines = [{"timestamp": int(time.time() * 1000), "message": message}]
        cloudwatch_logs._put_log_events({"logGroupName": group, "logStreamName": STREAM, "logEvents": lines})


def _line(execution: Mapping[str, Any], event: Mapping[str, Any], *, data: bool) -> dict[str, Any]:
    details: Mapping[str, Any] = next((value for name, value in event.items() if name.endswith("EventDetails")), {})
    hidden = () if data else ("input", "output", "error", "cause")
    return {
        "id": str(event["id"]),
        "type": event["type"],
        "details": {name: value for name, value in details.items() if name not in hidden},
        "previous_event_id": str(event["previousEventId"]),
        "event_timestamp": str(int(datetime.fromisoformat(event["timestamp"]).timestamp() * 1000)),
        "execution_arn": execution["executionArn"],
        "redrive_count": "0",
    }


def _lower(value: Any) -> Any:
    """Return the configuration in the API's spelling: CloudFormation begins each name with a capital letter."""
    if isinstance(value, Mapping):
        return {name[:1].lower() + name[1:]: _lower(item) for name, item in value.items()}
    return [_lower(item) for item in value] if isinstance(value, list) else value
