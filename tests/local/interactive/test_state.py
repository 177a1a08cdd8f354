"""How a command in another terminal finds the running `make local`, and what it says where none is ready."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from local.interactive import state
from local.interactive.state import AlreadyRunningError, NotRunningError
from local.stack import LocalStack

PORT = 9  # nothing listens there
DOCUMENT = {"process": 1, "port": PORT, "cluster": "demo", "region": "us-east-1", "account": "000000000000"}
HOLDER = """
import sys, time
from pathlib import Path
from local.interactive import state
with state.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder's lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def write(directory):
    (directory / state.STATE).write_text(json.dumps(DOCUMENT))


def test_without_a_running_stack_the_message_says_how_to_start_one(tmp_path):
    with pytest.raises(NotRunningError, match="start `make local` in another terminal"):
        state.running(tmp_path)


def test_a_stack_that_still_starts_is_named_with_its_process(tmp_path, holder):
    with pytest.raises(NotRunningError, match=rf"process {holder.pid}\) is not ready yet"):
        state.running(tmp_path)


def stack_that_answers(code):
    """A stack whose describe_table answers with this error."""
    stack = LocalStack(directory=Path())
    error = ClientError({"Error": {"Code": code, "Message": ""}}, "DescribeTable")
    stack._clients["dynamodb"] = Mock(describe_table=Mock(side_effect=error))
    return stack


def test_a_stack_without_leeward_plays_no_event():
    with pytest.raises(NotRunningError, match=r"not deployed on the local stack.*without STACK_ONLY=1"):
        state.check_deployed(stack_that_answers("ResourceNotFoundException"))


def test_another_failure_is_no_missing_deployment():
    with pytest.raises(ClientError):
        state.check_deployed(stack_that_answers("ThrottlingException"))


def test_a_record_of_a_killed_process_counts_for_nothing(tmp_path, holder):
    write(tmp_path)
    holder.kill()
    holder.wait()
    with pytest.raises(NotRunningError, match="no local stack is running"):
        state.running(tmp_path)


def test_a_stack_that_does_not_answer_is_named_with_its_port(tmp_path, holder):
    write(tmp_path)
    with pytest.raises(NotRunningError, match=rf"does not answer on http://127.0.0.1:{PORT} .*stop it and start"):
        state.running(tmp_path)


def test_a_second_stack_in_the_same_folder_is_refused(tmp_path, holder):
    with pytest.raises(AlreadyRunningError, match=f"process {holder.pid}"), state.held(tmp_path):
        pass


def test_the_records_of_an_earlier_stack_are_removed_at_the_start_and_at_the_end(tmp_path):
    write(tmp_path)
    with state.held(tmp_path):
        assert not (tmp_path / state.STATE).exists()
        assert (tmp_path / state.LOCK).read_text() == str(os.getpid())
        write(tmp_path)
    assert not (tmp_path / state.STATE).exists()
