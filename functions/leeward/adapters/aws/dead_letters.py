"""`ports.queues.DeadLetters` on SQS."""

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call

REASON_CHARACTERS = 1024


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
