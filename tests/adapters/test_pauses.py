"""How long a function believes what it knows of the pause switch, and what it does when it cannot be read."""

from datetime import timedelta

import pytest

from leeward.adapters.pauses import KnownPauses
from leeward.errors import AccessDeniedError, AwsUnavailableError
from leeward.model.pause import PauseScope
from tests.fakes.builders import a_pause
from tests.fakes.clock import FakeClock
from tests.fakes.pauses import FakePauses

GONE = AwsUnavailableError("no answer")


class Switch:
    """A switch, and a function that looks at it."""

    def __init__(self):
        self.clock, self.table = FakeClock(), FakePauses()
        self.known = KnownPauses(self.table.read, self.clock)

    def pause(self, **more):
        self.table.write(self.table.read("blue").paused(a_pause(**more)))

    def resume(self):
        self.table.write(self.table.read("blue").resumed("", "arn", "over"))

    def after(self, seconds):
        self.clock.advance(seconds=seconds)
        return self.known.of_cluster("blue")


@pytest.fixture
def switch():
    return Switch()


def test_a_pause_and_its_end_are_seen_within_a_minute(switch):
    assert switch.after(0).voluntary() == ""
    switch.pause()
    assert switch.after(60).voluntary() != ""
    switch.resume()
    assert switch.after(60).voluntary() == ""


def test_a_look_each_second_reads_the_table_twice_a_minute(switch):
    for _ in range(60):
        switch.after(1)
    assert switch.table.asked["read"] == 2


def test_a_pause_ends_at_its_moment_without_another_read(switch):
    switch.pause(until=switch.clock.now() + timedelta(seconds=20))
    assert switch.after(19).voluntary() != ""
    assert switch.after(1).voluntary() == ""
    assert switch.table.asked["read"] == 2  # the test's own, and one


def test_one_failure_changes_nothing(switch):
    switch.after(0)
    switch.table.fail("read", GONE, times=1)
    assert switch.after(45).voluntary() == ""
    assert switch.after(16).voluntary() == ""


@pytest.mark.parametrize("error", [GONE, AccessDeniedError("dynamodb:GetItem: denied")])
def test_after_a_minute_without_an_answer_nothing_voluntary_begins(switch, error):
    switch.after(0)
    switch.table.fail("read", error)
    assert switch.after(31).voluntary() == ""
    assert "cannot be read" in switch.after(30).voluntary()
    assert switch.after(10).everything() == ""


def test_a_function_that_has_never_read_the_switch_begins_nothing_voluntary(switch):
    switch.table.fail("read", GONE, times=1)
    assert "cannot be read" in switch.after(0).voluntary()
    assert switch.after(10).voluntary() == ""


def test_a_known_pause_stays_in_force_while_the_switch_cannot_be_read(switch):
    switch.pause(scope=PauseScope.ALL)
    switch.after(0)
    switch.table.fail("read", GONE)
    assert switch.after(600).everything() == "cluster blue is paused: game day"


def test_a_table_that_fails_is_not_asked_in_each_step(switch):
    switch.table.fail("read", GONE)
    for _ in range(60):
        switch.after(1)
    assert switch.table.asked["read"] == 6
