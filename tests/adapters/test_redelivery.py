"""Which queue is asked to deliver a message again."""

import pytest

from leeward.adapters.aws.queues import SqsRedelivery

BESIDE = "https://sqs.us-east-1.amazonaws.com/111122223333"


@pytest.mark.parametrize(
    ("queue", "url"),
    [
        ("", f"{BESIDE}/leeward-interruption"),
        ("arn:aws:sqs:us-east-1:111122223333:leeward-interruption", f"{BESIDE}/leeward-interruption"),
        ("arn:aws:sqs:us-east-1:111122223333:leeward-state-changes", f"{BESIDE}/leeward-state-changes"),
    ],
)
def test_the_queue_that_a_message_came_from_is_asked(aws, queue, url):
    entries = [{"Id": "0", "ReceiptHandle": "r-1", "VisibilityTimeout": 4}]
    asked = {"QueueUrl": url, "Entries": entries}
    aws.expect("sqs", "change_message_visibility_batch", asked, {"Successful": [{"Id": "0"}], "Failed": []})
    SqsRedelivery(aws.clients, f"{BESIDE}/leeward-interruption").after({"r-1": 4}, queue=queue)
