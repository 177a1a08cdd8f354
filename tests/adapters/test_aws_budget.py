"""AWS calls of an invocation whose time is over are not begun."""

import pytest

from leeward.adapters.aws.clients import AwsClients
from leeward.adapters.aws.errors import aws_call
from leeward.errors import AwsUnavailableError
from leeward.time_budget import TimeBudget
from tests.adapters.hanging_server import HangingServer
from tests.fakes.clock import FakeClock


def test_no_call_begins_once_the_budget_is_spent(aws_environment, monkeypatch):
    server = HangingServer()
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    clients, clock = AwsClients("us-east-1"), FakeClock()
    clients.serve_until(TimeBudget.of(clock, 5))
    clock.advance(seconds=6)
    with pytest.raises(AwsUnavailableError, match="no time is left"), aws_call("sqs:ListQueues", "all"):
        clients.get("sqs").list_queues()
    assert server.asked == []
    server.close()
