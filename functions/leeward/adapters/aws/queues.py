"""`ports.queues` on SQS: the dead-letter queue, and the visibility time-outs of failed messages."""

from collections.abc import Mapping

from leeward.adapters.aws.clients import AwsClients, chunks
from leeward.adapters.aws.errors import aws_call

REASON_CHARACTERS = 1024
BATCH_ENTRIES = 10  # the most that one ChangeMessageVisibilityBatch takes


class SqsDeadLetters:
    """Dead-letter queue of the interruption queue."""

    def __init__(self, clients: AwsClients, queue_url: str) -> None:
        self._clients = clients
        self._queue_url = queue_url

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Send the message. A repeat sends a second copy, with the same attribute `message_id`."""
        attributes = {"reason": reason[:REASON_CHARACTERS] or "unknown", "message_id": message_id or "unknown"}
        with aws_call("sqs:SendMessage", f"the dead-letter queue, message {message_id}"):
            self._clients.get("sqs").send_message(
                QueueUrl=self._queue_url,
                MessageBody=body or "(empty)",  # SQS refuses an empty body
                MessageAttributes={
                    name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
                },
            )


class SqsRedelivery:
    """Visibility time-outs of failed messages: the queue's own is too long for a spot warning. `queue_url`: the URL of
    the interruption queue; all other queues are in the same account and Region.
    """

    def __init__(self, clients: AwsClients, queue_url: str) -> None:
        self._clients = clients
        self._queue_url = queue_url

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Set the visibility time-outs. SQS refuses entries with an expired handle: these are visible already."""
        account_url, _, own = self._queue_url.rpartition("/")
        name = queue.rpartition(":")[2] or own
        url = f"{account_url}/{name}"
        for receipts in chunks(delays, BATCH_ENTRIES):
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": delays[receipt]}
                for number, receipt in enumerate(receipts)
            ]
            with aws_call("sqs:ChangeMessageVisibility", f"queue {name}"):
                self._clients.get("sqs").change_message_visibility_batch(QueueUrl=url, Entries=entries)
