"""A call that AWS refuses for good, again and again: the message waits until the permission is fixed."""

from pathlib import Path

import pytest

from leeward.errors import AccessDeniedError


def spot():
    return Path("tests/events/spot_interruption.json").read_text()


@pytest.mark.parametrize(("port", "call"), [("claims", "claim"), ("executions", "start"), ("instances", "describe")])
def test_a_permission_that_is_missing_ten_times_in_a_row_crashes_nothing(connect, port, call):
    """The peer's defect: the same error three times in a row ends the process, a missing permission is a crash loop."""
    queue = connect()
    getattr(queue.system, port).fail(call, AccessDeniedError(f"not allowed to {call}"))
    for _ in range(10):
        assert queue.deliver(spot()) == ["m0"]
    assert f"not allowed to {call}" in queue.log[-1]["message"]
    getattr(queue.system, port).heal()
    assert queue.deliver(spot()) == []
    assert queue.system.executions.open == {"i-0abc-1"}
