"""`ports.queues` on SQS: the dead-letter queue, and messages that are delivered again at once."""

from collections.abc import Mapping

from leeward.adapters.aws.clients import AwsClients, chunks
from leeward.adapters.aws.errors import aws_call

REASON_CHARACTERS = 1024
AT_ONCE = 10  # entries that one ChangeMessageVisibilityBatch takes


class SqsDeadLetters:
    """Dead-letter queue of the interruption queue."""

    def __init__(self, clients: AwsClients, queue_url: str) -> None:
        self._clients = clients
        self._queue_url = queue_url

    def send(self, body: str, *, reason: str, message_id: str) -> None:
        """Send it. A repeat sends a second copy, which differs only in its own id; the attribute names the first's."""
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
    """Queues whose own visibility time-out is too long for a spot warning that failed. All of them are beside the
    interruption queue, whose URL is `queue_url`.
    """

    def __init__(self, clients: AwsClients, queue_url: str) -> None:
        self._clients = clients
        self._queue_url = queue_url

    def after(self, delays: Mapping[str, int], *, queue: str = "") -> None:
        """Set the visibility time-outs. Entries that SQS refuses (an expired handle) are redelivered anyway."""
        beside, _, own = self._queue_url.rpartition("/")
        name = queue.rpartition(":")[2] or own
        for receipts in chunks(delays, AT_ONCE):
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": delays[receipt]}
                for number, receipt in enumerate(receipts)
            ]
            with aws_call("sqs:ChangeMessageVisibility", f"queue {name}"):
                self._clients.get("sqs").change_message_visibility_batch(QueueUrl=f"{beside}/{name}", Entries=entries)
