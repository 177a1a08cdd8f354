"""A queue that a function reads, with a dead-letter queue behind it: the simulation's, and the local AWS's.

What the function does with a message stands in its body: `good`; `bad` fails always; `once`, `soon` and `late` fail the
first time; `crash` brings the whole invocation down. As the product does, it asks for each message that failed to be
delivered again after some seconds, so that no test waits for the queue's own visibility time-out."""

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from simulation.aws.queue import Queue, Queued, SimRedelivery
from simulation.invocations import Invocations
from simulation.timeline import Timeline

RECEIVES = 2  # maxReceiveCount
AGAIN_AFTER = {"bad": 1, "once": 1, "soon": 0, "late": 6, "crash": 1}  # seconds
FIRST_TIME = ("once", "soon", "late")
FUNCTION_TIMEOUT, VISIBILITY = 20, 60  # seconds, of the local function and queue
PATIENCE = 120.0
ROLE = "arn:aws:iam::000000000000:role/contract"
SOURCE = """
import json, os
import boto3

sqs = boto3.client("sqs")
again_after, first_time = json.loads(os.environ["AGAIN_AFTER"]), json.loads(os.environ["FIRST_TIME"])

def handler(event, context):
    failed = []
    for record in event["Records"]:
        body, receives = record["body"], int(record["attributes"]["ApproximateReceiveCount"])
        kind, handle = body.split()[0], record["receiptHandle"]
        sqs.send_message(QueueUrl=os.environ["DELIVERIES"], MessageBody=json.dumps([body, receives]))
        if kind == "good" or (kind in first_time and receives > 1):
            continue
        seconds = again_after[kind]
        sqs.change_message_visibility(QueueUrl=os.environ["QUEUE"], ReceiptHandle=handle, VisibilityTimeout=seconds)
        if kind == "crash":
            raise RuntimeError("asked to")
        failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
"""


class QueueWorld(Protocol):
    """Messages go in, and are delivered as often as the queue thinks right."""

    def send(self, *bodies: str) -> None:
        """Put them in, one after the other."""
        ...

    def deliveries(self) -> list[tuple[str, int]]:
        """(body, how often it has been received) of each delivery so far, in their order."""
        ...

    def dead(self) -> list[str]:
        """The bodies in the dead-letter queue."""
        ...

    def until(self, condition: Callable[[], Any]) -> None:
        """Let time pass until it is true."""
        ...


class SimulatedQueue:
    """A `QueueWorld` in virtual time."""

    def __init__(self) -> None:
        self._timeline = Timeline()
        self._queue = Queue(self._timeline, Invocations(self._timeline))
        self._queue.consumer = self._consume
        self._redelivery = SimRedelivery(self._queue)
        self._seen: list[tuple[str, int]] = []

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self._queue.send(body)

    def deliveries(self) -> list[tuple[str, int]]:
        return self._seen

    def dead(self) -> list[str]:
        return [letter.body for letter in self._queue.dead_letters]

    def until(self, condition: Callable[[], Any]) -> None:
        end = self._timeline.now() + 3600 * PATIENCE
        while not condition():
            assert self._timeline.now() < end, "it never came"
            self._timeline.run_until(self._timeline.now() + 1)

    def _consume(self, batch: Sequence[Queued]) -> Sequence[str]:
        failed = []
        for message in batch:
            kind = message.body.split()[0]
            self._seen.append((message.body, message.receives))
            if kind == "good" or (kind in FIRST_TIME and message.receives > 1):
                continue
            self._redelivery.after({message.receipt: AGAIN_AFTER[kind]})
            if kind == "crash":
                raise RuntimeError("asked to")
            failed.append(message.id)
        return failed


class LiveQueue:
    """A `QueueWorld` on the local AWS."""

    def __init__(self, local: Any) -> None:
        self._sqs, self._functions = local.client("sqs"), local.client("lambda")
        self._seen: list[tuple[str, int]] = []
        self._dead: list[str] = []
        self._dead_letters, self._deliveries = self._make("dead"), self._make("deliveries")
        redrive = {"deadLetterTargetArn": self._arn(self._dead_letters), "maxReceiveCount": RECEIVES}
        visibility = {"VisibilityTimeout": str(VISIBILITY), "RedrivePolicy": json.dumps(redrive)}
        self._queue = self._make("queue", visibility)
        self._mapping = self._map(self._function())

    def send(self, *bodies: str) -> None:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        self._sqs.send_message_batch(QueueUrl=self._queue, Entries=entries)

    def deliveries(self) -> list[tuple[str, int]]:
        self._seen += [(body, receives) for body, receives in map(json.loads, self._take(self._deliveries))]
        return self._seen

    def dead(self) -> list[str]:
        self._dead += self._take(self._dead_letters)
        return self._dead

    def until(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"it never came; delivered {self._seen}"
            time.sleep(0.1)

    def close(self) -> None:
        """The function reads no more."""
        self._functions.delete_event_source_mapping(UUID=self._mapping)

    def _make(self, name: str, attributes: dict[str, str] | None = None) -> str:
        full = f"contract-{name}-{uuid.uuid4().hex[:8]}"
        url: str = self._sqs.create_queue(QueueName=full, Attributes=attributes or {})["QueueUrl"]
        return url

    def _arn(self, url: str) -> str:
        found = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(found["Attributes"]["QueueArn"])

    def _function(self) -> str:
        packed, name = io.BytesIO(), f"contract-{uuid.uuid4().hex[:8]}"
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("index.py", SOURCE)
        self._functions.create_function(
            FunctionName=name,
            Runtime="python3.13",
            Handler="index.handler",
            Role=ROLE,
            Code={"ZipFile": packed.getvalue()},
            Timeout=FUNCTION_TIMEOUT,
            Environment={
                "Variables": {
                    "QUEUE": self._queue,
                    "DELIVERIES": self._deliveries,
                    "AGAIN_AFTER": json.dumps(AGAIN_AFTER),
                    "FIRST_TIME": json.dumps(FIRST_TIME),
                }
            },
        )
        self._functions.get_waiter("function_active_v2").wait(FunctionName=name, WaiterConfig={"Delay": 0.1})
        return name

    def _map(self, function: str) -> str:
        made = self._functions.create_event_source_mapping(
            FunctionName=function,
            EventSourceArn=self._arn(self._queue),
            BatchSize=100,
            MaximumBatchingWindowInSeconds=1,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )
        return str(made["UUID"])

    def _take(self, url: str) -> list[str]:
        bodies = []
        while found := self._sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            for message in found:
                bodies.append(str(message["Body"]))
                self._sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return bodies
