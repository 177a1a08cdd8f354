"""Every execution of a state machine that fails in a stack of these tests has a cause that an operator can read."""

from collections.abc import Iterator

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from local.stack import LocalStack
from tests.state_machines.causes import flaws


@pytest.fixture(scope="session", autouse=True)
def _causes_are_sentences() -> Iterator[None]:
    """Look at the failed executions of each stack before it stops; a stack that has died is not asked."""
    stop, unreadable = LocalStack.stop, dict[str, object]()

    def look_and_stop(stack: LocalStack) -> None:
        if all(child.poll() is None for child in stack._children) and stack._clients:
            unreadable.update(unreadable_causes(stack))
        stop(stack)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStack, "stop", look_and_stop)
        yield
    assert unreadable == {}


def unreadable_causes(stack: LocalStack) -> dict[str, object]:
    """Execution -> what is wrong with its cause, and the cause."""
    found = dict[str, object]()
    client = stack.client("stepfunctions")
    try:
        for machine in client.list_state_machines()["stateMachines"]:
            pages = client.get_paginator("list_executions").paginate(
                stateMachineArn=machine["stateMachineArn"], statusFilter="FAILED"
            )
            for execution in (execution for page in pages for execution in page["executions"]):
                ended = client.describe_execution(executionArn=execution["executionArn"])
                if wrong := flaws(ended.get("error", ""), ended.get("cause", "")):
                    found[ended["executionArn"]] = (wrong, ended.get("error"), ended.get("cause"))
    except (BotoCoreError, ClientError):  # it stops already
        pass
    return found
