"""A look that is throttled is taken again, no other failure is."""

import pytest

from leeward.errors import AccessDeniedError, ThrottledError
from leeward.retry import retry
from tests.fakes.clock import START, FakeClock


def a_look(*failures):
    """Fails in those ways, then answers."""
    left = list(failures)

    def look():
        if left:
            raise left.pop(0)
        return "seen"

    return look


def test_it_is_taken_again_after_each_pause():
    clock = FakeClock()
    assert retry(a_look(ThrottledError("a"), ThrottledError("b")), clock, pauses=(1, 2)) == "seen"
    assert (clock.now() - START).total_seconds() == 3


def test_the_last_failure_is_reported():
    clock = FakeClock()
    with pytest.raises(ThrottledError, match="c"):
        retry(a_look(*map(ThrottledError, "abc")), clock, pauses=(1, 2))


def test_what_another_try_does_not_change_is_reported_at_once():
    clock = FakeClock()
    with pytest.raises(AccessDeniedError):
        retry(a_look(AccessDeniedError("no")), clock)
    assert clock.now() == START
