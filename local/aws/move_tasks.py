"""SQS's message move tasks, which ministack lacks: the redrive of a dead-letter queue.

As AWS documents it ("StartMessageMoveTask", "Troubleshooting dead-letter queue redrive"): the call returns at once and
the task works afterwards. Without a destination each message returns to the queue from which SQS moved it; a message
that was sent to the dead-letter queue directly has none, and the task fails. A moved message is a new one.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from ministack.services import sqs

from local.aws.pins import expect

RUNS_FOR = 0.5  # seconds in which a task is RUNNING
MOST_LISTED = 10
UNKNOWN_SOURCE = "CouldNotDetermineMessageSource"

_tasks: dict[str, list[dict[str, Any]]] = {}  # by ARN of the source, the newest first


def install() -> None:
    """Add both actions."""
    actions = {"StartMessageMoveTask": _start, "ListMessageMoveTasks": _list}
    expect("ministack", not actions.keys() & sqs._HANDLERS.keys(), "SQS has message move tasks of its own now")
    sqs._HANDLERS.update(actions)


async def _start(data: Mapping[str, Any], _url: str) -> dict[str, Any]:
    arn, destination = str(data["SourceArn"]), data.get("DestinationArn")
    source = _queue(arn)
    if not any(_dead_letters_of(queue) == arn for queue in sqs._queues.values()):
        raise sqs._Err("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.")
    if destination:
        _queue(destination)
    started = _tasks.setdefault(arn, [])
    if started and started[0]["Status"] == "RUNNING":
        raise sqs._Err("UnsupportedOperation", "There is already a task running for the source queue.")
    handle = sqs.new_uuid()
    task = {
        "TaskHandle": handle,
        "Status": "RUNNING",
        "SourceArn": arn,
        **({"DestinationArn": destination} if destination else {}),
        "ApproximateNumberOfMessagesMoved": 0,
        "ApproximateNumberOfMessagesToMove": len(source["messages"]),
        "StartedTimestamp": int(time.time() * 1000),
    }
    started.insert(0, task)
    asyncio.get_running_loop().call_later(RUNS_FOR, _move, task, source, destination)
    return {"TaskHandle": handle}


def _list(data: Mapping[str, Any], _url: str) -> dict[str, Any]:
    arn = str(data["SourceArn"])
    _queue(arn)
    return {"Results": _tasks.get(arn, [])[: min(int(data.get("MaxResults") or 1), MOST_LISTED)]}


def _move(task: dict[str, Any], source: dict[str, Any], destination: str | None) -> None:
    """Move the messages one by one, and end the task."""
    del task["TaskHandle"]  # AWS names it while the task runs
    while source["messages"]:
        message = source["messages"][0]
        to = destination or message.get("sys", {}).get("DeadLetterQueueSourceArn")
        if not to:
            task.update(Status="FAILED", FailureReason=UNKNOWN_SOURCE)
            return
        source["messages"].pop(0)
        _queue(to)["messages"].append(_renewed(message))
        task["ApproximateNumberOfMessagesMoved"] += 1
    task["Status"] = "COMPLETED"
    sqs.esm_wake.set()


def _renewed(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message as a new one, with the body and the attributes of the old one."""
    now = time.time()
    fields = {key: message.get(key) for key in ("body", "md5_body", "message_attributes", "md5_attrs")}
    return {
        **fields,
        "id": sqs.new_uuid(),
        "sent_at": now,
        "visible_at": now,
        "receive_count": 0,
        "receipt_handle": None,
    }


def _queue(arn: str) -> dict[str, Any]:
    found: dict[str, Any] | None = sqs._queue_by_arn(arn)
    if found is None:
        raise sqs._Err("ResourceNotFoundException", f"The resource that you specified for {arn} doesn't exist.")
    return found


def _dead_letters_of(queue: Mapping[str, Any]) -> str:
    policy = json.loads(queue["attributes"].get("RedrivePolicy") or "{}")
    return str(policy.get("deadLetterTargetArn", ""))
