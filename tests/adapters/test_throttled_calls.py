"""Tries that AWS throttles are counted, also where a repeated try succeeds."""

import pytest
from botocore.exceptions import ClientError

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.errors import ThrottledError
from tests.adapters.scripted_server import Reply, ScriptedServer

REFUSED = Reply(400, {"__type": "ThrottlingException", "message": "Rate exceeded"})
EMPTY = Reply(200, {"executions": []})


@pytest.fixture
def calls(aws_environment, monkeypatch):
    """Clients of a server with these answers, and the calls that were throttled."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    servers = []

    def connect(*script):
        servers.append(ScriptedServer(*script))
        monkeypatch.setenv("AWS_ENDPOINT_URL", servers[-1].url)
        noted = []
        return AwsClients("us-east-1", throttled=noted.append).get("stepfunctions"), noted

    yield connect
    for server in servers:
        server.close()


def test_a_throttled_try_that_is_repeated_with_success_is_counted_once(calls):
    client, noted = calls(REFUSED, EMPTY)
    assert client.list_executions(stateMachineArn="arn:aws:states:us-east-1:1:stateMachine:m")["executions"] == []
    assert noted == ["stepfunctions:ListExecutions"]


def test_each_try_is_counted_and_the_error_stays_what_it_was(calls):
    client, noted = calls(REFUSED)
    with pytest.raises(ThrottledError), aws_call("stepfunctions:ListExecutions", "m"):
        client.list_executions(stateMachineArn="arn:aws:states:us-east-1:1:stateMachine:m")
    assert noted == ["stepfunctions:ListExecutions"] * 3


def test_other_answers_are_not_counted(calls):
    client, noted = calls(EMPTY)
    client.list_executions(stateMachineArn="arn:aws:states:us-east-1:1:stateMachine:m")
    assert noted == []


@pytest.mark.parametrize("code", ["TransactionConflictException", "ScalingActivityInProgress", "AccessDeniedException"])
def test_a_conflict_with_another_call_or_a_denial_is_not_counted(calls, code):
    client, noted = calls(Reply(400, {"__type": code, "message": "no"}))
    with pytest.raises(ClientError, match=code):
        client.list_executions(stateMachineArn="arn:aws:states:us-east-1:1:stateMachine:m")
    assert noted == []
