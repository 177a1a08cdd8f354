"""`python -m local.interactive.notifications` (make notifications): print what Leeward has notified of on the running
`make local`, each event once.

The events are those of the default bus; a rule of the stack puts them into a queue (`collect`).
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.interactive import state
from local.stack import LocalStack

QUEUE = "notifications"
WAIT_SECONDS = 3  # for the first event
ABOUT = ("node", "instance", "group", "cluster")  # the first of them that an event has is what it is about


def main() -> int:
    """Print the events in the order of their time. Exit code 2 where no stack is running."""
    parser = argparse.ArgumentParser(prog="python -m local.interactive.notifications", description=__doc__)
    parser.add_argument("--dir", type=Path, default=state.DIRECTORY, help="folder of the running make local")
    options = parser.parse_args()
    try:
        details = sorted(received(state.running(options.dir.resolve())), key=lambda detail: str(detail["at"]))
    except state.NotRunningError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, BotoCoreError, ClientError) as error:
        print(f"the local stack does not answer any more: {error}", file=sys.stderr)
        return 1
    for detail in details:
        print(line(detail))
    if not details:
        print("nothing since the last call")
    return 0


def collect(stack: LocalStack) -> None:
    """Create the queue and the rule that puts Leeward's events into it."""
    queue = stack.client("sqs").create_queue(QueueName=QUEUE)["QueueUrl"]
    arn = stack.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
    stack.client("events").put_rule(Name=QUEUE, EventPattern=json.dumps({"source": ["leeward"]}))
    stack.client("events").put_targets(Rule=QUEUE, Targets=[{"Id": QUEUE, "Arn": arn["QueueArn"]}])


def received(stack: LocalStack) -> Iterator[dict[str, Any]]:
    """Yield the `detail` of each event, and take it off the queue."""
    client, wait = stack.client("sqs"), WAIT_SECONDS
    queue = client.get_queue_url(QueueName=QUEUE)["QueueUrl"]
    while messages := client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=wait).get(
        "Messages"
    ):
        wait = 0
        for message in messages:
            yield json.loads(message["Body"])["detail"]
            client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def line(detail: dict[str, Any]) -> str:
    """Return time, type and reason of an event, what it is about, and what follows."""
    about = next(filter(None, map(detail.get, ABOUT)), None)
    following = f"; next: {detail['next']}" if detail.get("next") else ""
    return f"{detail['at']} {detail['event']}: {about}: {detail['why']}{following}"


if __name__ == "__main__":
    sys.exit(main())
