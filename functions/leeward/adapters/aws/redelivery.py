"""`ports.queues.Redelivery` on SQS."""

from collections.abc import Mapping

from leeward.adapters.aws.batches import chunks
from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call

AT_ONCE = 10  # entries that one ChangeMessageVisibilityBatch takes


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
