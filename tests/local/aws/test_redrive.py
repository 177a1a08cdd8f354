"""The redrive of docs/runbooks.md, run as it stands there, for each of the four kinds of dead letter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.local.aws.conftest import eventually

pytestmark = pytest.mark.local

SECTION = Path("docs/runbooks.md").read_text().partition("### dead-letters")[2].partition("\n### ")[0]
FIX = SECTION.partition("**Fix**")[2].partition("**If you do nothing**")[0]
COMMAND = "\n".join(line.strip() for line in FIX.splitlines() if line.startswith("    "))
NAMES = ("leeward-interruption", "leeward-state-changes", "leeward-interruption-dead-letters")


class Queues:
    """The three queues as infra/queue.py makes them; a message is a dead letter after one receipt."""

    def __init__(self, aws):
        self.aws, self.sqs = aws, aws.client("sqs")
        self.urls = {name: self.sqs.create_queue(QueueName=name)["QueueUrl"] for name in reversed(NAMES)}
        redrive = {"deadLetterTargetArn": self.arn(NAMES[2]), "maxReceiveCount": 1}
        for name in NAMES[:2]:
            attributes = {"RedrivePolicy": json.dumps(redrive), "VisibilityTimeout": "0"}
            self.sqs.set_queue_attributes(QueueUrl=self.urls[name], Attributes=attributes)

    def arn(self, name):
        return f"arn:aws:sqs:{self.aws.region}:{self.aws.account}:{name}"

    def send(self, name, body, **attributes):
        given = {key: {"DataType": "String", "StringValue": value} for key, value in attributes.items()}
        self.sqs.send_message(QueueUrl=self.urls[name], MessageBody=body, MessageAttributes=given)

    def read(self, name):
        """Receive what there is, with all attributes; it is visible again at once."""
        asked = {"MessageAttributeNames": ["All"], "AttributeNames": ["All"], "MaxNumberOfMessages": 10}
        return self.sqs.receive_message(QueueUrl=self.urls[name], VisibilityTimeout=0, **asked).get("Messages", [])

    def fill(self):
        """One dead letter of each kind."""
        for name, body in ((NAMES[0], "failed"), (NAMES[1], "failed change")):
            self.send(name, body)
            self.read(name)
            self.read(name)  # SQS moves it when it would be received again
        self.send(NAMES[2], "malformed", reason="the body is no JSON")
        self.send(NAMES[2], "undelivered", ERROR_CODE="SDK_CLIENT_ERROR", ERROR_MESSAGE="throttled", RULE_ARN="arn")
        eventually(lambda: len(self.read(NAMES[2])) == 4)


@pytest.fixture
def queues(aws):
    made = Queues(aws)
    made.fill()
    yield made
    for url in made.urls.values():
        made.sqs.delete_queue(QueueUrl=url)


def run(aws, tmp_path, command):
    """Run it with an `aws` on the PATH that speaks to the local AWS."""
    tool = tmp_path / "aws"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent / "aws_command.py"} "$@"\n')
    tool.chmod(0o755)
    text = command.replace("REGION", aws.region).replace("ACCOUNT", aws.account).replace("sleep 5", "sleep 0.1")
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LOCAL_ENDPOINT": aws.endpoint,
        "AWS_DEFAULT_REGION": aws.region,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
    }
    return subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True, check=False)


def test_every_kind_has_the_attributes_that_the_runbook_names(queues):
    letters = {letter["Body"]: letter for letter in queues.read(NAMES[2])}
    for body, name in (("failed", NAMES[0]), ("failed change", NAMES[1])):
        assert letters[body]["Attributes"]["DeadLetterQueueSourceArn"] == queues.arn(name)
        assert "MessageAttributes" not in letters[body]
    assert set(letters["malformed"]["MessageAttributes"]) == {"reason"}
    assert {"ERROR_CODE", "ERROR_MESSAGE", "RULE_ARN"} <= set(letters["undelivered"]["MessageAttributes"])


def test_the_runbook_redrives_each_kind_and_waits_for_the_end(aws, queues, tmp_path):
    done = run(aws, tmp_path, COMMAND)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].split("\t") == ["COMPLETED", "4", "None"]
    assert {letter["Body"] for letter in queues.read(NAMES[0])} == {
        "failed",
        "failed change",
        "malformed",
        "undelivered",
    }
    assert queues.read(NAMES[2]) == []


def test_a_task_that_fails_fails_the_command(aws, queues, tmp_path):
    """Without the destination the first message that was sent to the dead letters ends the task."""
    without = COMMAND.replace(f" --destination-arn arn:aws:sqs:REGION:ACCOUNT:{NAMES[0]}", "")
    assert without != COMMAND
    done = run(aws, tmp_path, without)
    assert done.returncode != 0
    assert done.stdout.splitlines()[-1].split("\t") == ["FAILED", "2", "CouldNotDetermineMessageSource"]


def test_a_task_that_cannot_be_started_fails_the_command(aws, queues, tmp_path):
    done = run(aws, tmp_path, COMMAND.replace(NAMES[2], "no-such-queue"))
    assert done.returncode != 0
