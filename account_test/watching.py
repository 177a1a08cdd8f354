"""Observation of a play until it is over: the group, its nodes and pods, the table, the executions, the events."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError

from account_test.context import Context
from account_test.groups import described
from account_test.kubernetes import is_ready, nodes_by_instance
from account_test.recording import Event, Pod, Recording, Sample, SeenNode, Sizes, Termination
from account_test.run import TAG
from infra import names as naming
from leeward.model.well_known import PREFIX

PLAIN = TypeDeserializer()
RECORD = "termination#"


def look(context: Context, group: str) -> Sample:
    """Observe group, nodes and pods once. Raises StepError if the group does not exist."""
    found = described(context, group)
    label = context.base.get(f"label:{group}", group)
    nodes = context.kube.objects("Node", f"{TAG}={label}")
    pods = context.kube.objects("Pod", f"app={label}", context.run.namespace)
    budget = context.kube.read("PodDisruptionBudget", label, context.run.namespace)
    status = (budget or {}).get("status") or {}
    counted = "currentHealthy" in status and "desiredHealthy" in status
    return Sample(
        at=time.time(),
        desired=int(found["DesiredCapacity"]),
        members={one["InstanceId"]: one["LifecycleState"] for one in found["Instances"]},
        nodes={instance: _node(node) for instance, node in nodes_by_instance(nodes)},
        pods={pod["metadata"]["name"]: _pod(pod) for pod in pods},
        budget=(int(status["currentHealthy"]), int(status["desiredHealthy"])) if counted else None,
    )


def _node(node: Mapping[str, Any]) -> SeenNode:
    spec = node.get("spec") or {}
    ours = [
        taint["key"] for taint in spec.get("taints") or () if taint["key"].startswith(PREFIX) and taint["key"] != TAG
    ]
    return SeenNode(
        name=node["metadata"]["name"],
        ready=is_ready(node),
        cordoned=bool(spec.get("unschedulable")),
        tainted=bool(ours),
    )


def _pod(pod: Mapping[str, Any]) -> Pod:
    return Pod(
        node=(pod.get("spec") or {}).get("nodeName") or "",
        ready=is_ready(pod),
        deleting="deletionTimestamp" in pod["metadata"],
    )


def sizes(context: Context, group: str) -> Sizes:
    """Return the group's present sizes."""
    found = described(context, group)
    return Sizes(
        minimum=found["MinSize"],
        desired=found["DesiredCapacity"],
        maximum=found["MaxSize"],
        suspended=tuple(sorted(one["ProcessName"] for one in found.get("SuspendedProcesses") or ())),
    )


def terminations(context: Context, instances: set[str]) -> list[Termination]:
    """Return the records of these instances."""
    pages = (
        context.aws("dynamodb").get_paginator("scan").paginate(TableName=context.run.names.table, ConsistentRead=True)
    )
    items = [item for page in pages for item in page["Items"] if item["pk"]["S"].startswith(RECORD)]
    found = (_termination({name: PLAIN.deserialize(value) for name, value in item.items()}) for item in items)
    return sorted((one for one in found if one.instance in instances), key=lambda one: one.instance)


def _termination(item: Mapping[str, Any]) -> Termination:
    replacement = item.get("replacement") or {}
    return Termination(
        instance=str(item["pk"]).removeprefix(RECORD),
        status=str(item["status"]),
        causes=tuple(sorted(str(cause["kind"]) for cause in (item.get("causes") or {}).values())),
        launched=tuple(replacement.get("launched") or ()),
        replacement=str(replacement.get("reason") or ""),
        times={name: str(at) for name, at in (item.get("times") or {}).items()},
    )


def executions(context: Context, instances: set[str]) -> dict[str, str]:
    """Return the status by name of these instances' executions of node-termination: `INSTANCE-ATTEMPT`, or the name
    that a person gave.
    """
    machine = context.run.machine(naming.TERMINATION)
    pages = context.aws("stepfunctions").get_paginator("list_executions").paginate(stateMachineArn=machine)
    runs = {run["name"]: run["status"] for page in pages for run in page["executions"]}
    return {name: status for name, status in runs.items() if any(one in name for one in instances)}


def drain_tap(context: Context) -> list[Event]:
    """Return the events of EC2 and Auto Scaling since the last observation."""
    sqs, url, found = context.aws("sqs"), context.base["tap"], []
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages"):
        for message in messages:
            found.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def queue_depth(context: Context) -> int:
    """Return the number of messages that wait or are being processed."""
    sqs = context.aws("sqs")
    wanted = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = sqs.get_queue_url(QueueName=context.run.names.queue)["QueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=wanted)["Attributes"]
    return sum(int(found.get(name, 0)) for name in wanted)


def dead_letters(context: Context) -> list[tuple[str, str]]:
    """Return (reason, body) of each message, without deleting it."""
    sqs = context.aws("sqs")
    url = sqs.get_queue_url(QueueName=context.run.names.dead_letters)["QueueUrl"]
    answer = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0, WaitTimeSeconds=1
    )
    return [
        ((message.get("MessageAttributes") or {}).get("reason", {}).get("StringValue", ""), message["Body"])
        for message in answer.get("Messages") or ()
    ]


def machine_status(context: Context, execution: str) -> tuple[str, str]:
    """Return (status, error and cause) of an execution."""
    found = context.aws("stepfunctions").describe_execution(executionArn=execution)
    return found["status"], " ".join(filter(None, (found.get("error"), found.get("cause"))))


def watch(context: Context, seen: Recording, over: Callable[[Recording], bool], seconds: float) -> None:
    """Fill the recording until `over`, or until the time is up; an observation that AWS refuses is omitted."""
    deadline = time.monotonic() + seconds
    while True:
        observe(context, seen)
        seen.ended = over(seen)
        seen.seconds = time.time() - seen.began
        if seen.ended or time.monotonic() > deadline:
            break
        time.sleep(context.run.look)
    finish(context, seen)


def observe(context: Context, seen: Recording) -> None:
    """Observe once everything that a play may change."""
    try:
        seen.samples.append(look(context, seen.group))
        known = set(seen.members_before) | {name for sample in seen.samples for name in sample.members}
        seen.terminations = terminations(context, known)
        seen.executions = executions(context, known)
        seen.events += drain_tap(context)
    except ClientError as error:
        context.say(f"a look was refused: {error}")


def finish(context: Context, seen: Recording) -> None:
    """Read the values that are read only once, at the end. The queue is empty a moment after the last event."""
    seen.after = sizes(context, seen.group)
    until = time.monotonic() + 20 * context.run.look
    while (depth := queue_depth(context)) and time.monotonic() < until:
        time.sleep(context.run.look)
    seen.queue_depth, seen.dead_letters = depth, dead_letters(context)
    observe(context, seen)
