"""Calls to a simulated API server take simulated time, end with their budget, and hide no defect of the product."""

from types import SimpleNamespace

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.time_budget import TimeBudget
from simulation.timed_calls import TimedKubernetes
from tests.fakes.clock import FakeClock

METHODS = ("nodes", "untaint", "evict", "delete_pod", "event")


class SlowGate:
    """An injector whose API takes so many seconds."""

    def __init__(self, clock, seconds, *, late=False):
        self.clock, self.seconds, self.late = clock, seconds, late

    def answers_after(self, _method):
        return self.seconds

    def late_write(self, _method):
        return self.late

    def pass_time(self, seconds):
        self.clock.sleep(seconds)

    def now(self):
        return self.clock.now().timestamp()


def asked(seconds, budget, **named):
    clock, seen = FakeClock(), []
    api = TimedKubernetes(
        SimpleNamespace(**{name: lambda name=name: seen.append(name) or () for name in METHODS}),
        SlowGate(clock, seconds, **named),
        TimeBudget.of(clock, budget),
    )
    return api, clock, seen


def test_an_answer_within_the_budget_takes_its_time():
    api, clock, seen = asked(3, 5)
    assert api.nodes() == ()
    assert (clock.slept, seen) == ([3], ["nodes"])


@pytest.mark.parametrize("late", [False, True], ids=["without effect", "with its effect"])
def test_an_answer_beyond_the_budget_is_an_unreachable_cluster_when_the_budget_ends(late):
    api, clock, seen = asked(20, 5, late=late)
    with pytest.raises(ClusterUnreachableError):
        api.nodes()
    assert (clock.slept, seen) == ([5], ["nodes"] if late else [])
    with pytest.raises(ClusterUnreachableError, match="no time is left"):
        api.nodes()
    assert clock.slept == [5]


@pytest.mark.parametrize(("method", "seconds"), [("nodes", 20), ("untaint", 20), ("evict", 31), ("delete_pod", 31)])
def test_a_call_is_given_up_when_the_real_client_does_whatever_is_left_of_the_budget(method, seconds):
    """A write whose effect comes later than that would not have been sent any more."""
    api, clock, _ = asked(1000, 290)
    with pytest.raises(ClusterUnreachableError, match="no answer within"):
        getattr(api, method)()
    assert clock.slept == [seconds]


@pytest.mark.parametrize("late", [False, True], ids=["without effect", "with its effect"])
def test_an_event_that_is_not_answered_is_lost_and_holds_nothing_up(late):
    api, clock, seen = asked(1000, 3, late=late)
    assert api.event() is None
    assert (clock.slept, seen) == ([2], ["event"] if late else [])
    clock.sleep(1)
    assert api.event() is None
    assert clock.slept == [2, 1]


def test_a_call_beside_others_takes_the_time_of_its_answer_once():
    api, clock, seen = asked(8, 50)
    ended = api.beside(api.evict)
    assert not ended(3)
    clock.advance(seconds=4)
    assert ended(3)
    assert (clock.slept, seen) == ([3, 1], ["evict"])


def test_a_call_beside_others_that_is_not_answered_fails_when_the_real_client_gives_up():
    api, clock, _ = asked(1000, 290)
    ended = api.beside(api.evict)
    assert not ended(30)
    with pytest.raises(ClusterUnreachableError, match="no answer within"):
        ended(30)
    assert sum(clock.slept) == 31
