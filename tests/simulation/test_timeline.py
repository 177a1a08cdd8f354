"""Virtual time: order, chance by name, invocations that sleep, time out and die."""

from datetime import timedelta

from simulation.faults import Killed
from simulation.invocations import Invocations, SimClock
from simulation.timeline import START, Streams, Timeline


def test_what_is_due_happens_in_order_of_time_and_then_of_being_put_in():
    timeline, seen = Timeline(), []
    timeline.after(2, lambda: seen.append("late"), "late")
    timeline.after(1, lambda: seen.append("first"), "first")
    timeline.after(1, lambda: seen.append("second"), "second")
    timeline.run_until(START + 5)
    assert seen == ["first", "second", "late"]
    assert timeline.now() == START + 5


def test_what_is_cancelled_does_not_happen():
    timeline, seen = Timeline(), []
    timeline.after(1, lambda: seen.append("no"), "no").cancel()
    timeline.run_until(START + 5)
    assert seen == []
    assert timeline.happened == 0


def test_what_lies_in_the_past_happens_now_and_time_never_goes_back():
    timeline, seen = Timeline(), []
    timeline.after(10, lambda: timeline.at(START, lambda: seen.append(timeline.now()), "past"), "now")
    timeline.run_until(START + 20)
    assert seen == [START + 10]


def test_a_stream_does_not_move_when_another_is_used():
    one, other = Streams(7), Streams(7)
    for _ in range(5):
        other.stream("noise").random()
    assert [one.stream("a").random() for _ in range(3)] == [other.stream("a").random() for _ in range(3)]
    assert Streams(8).stream("a").random() != Streams(7).stream("a").random()


def test_invocations_interleave_where_they_sleep():
    timeline = Timeline()
    invocations = Invocations(timeline)
    clock, seen = SimClock(timeline, invocations), []

    def work(name, nap):
        for turn in range(2):
            seen.append(f"{name}{turn}")
            clock.sleep(nap)
        return name

    ends = []
    for name, nap in (("a", 2), ("b", 3)):
        invocations.start(lambda n=name, s=nap: work(n, s), lambda end: ends.append(end.result), name=name, timeout=60)
    timeline.run_until(START + 60)
    assert seen == ["a0", "b0", "a1", "b1"]
    assert ends == ["a", "b"]
    assert clock.now().timestamp() == START + 60


def test_an_invocation_that_takes_too_long_is_killed_where_it_sleeps():
    timeline = Timeline()
    invocations = Invocations(timeline)
    clock, ends, reached = SimClock(timeline, invocations), [], []

    def forever():
        try:
            clock.sleep(timedelta(hours=1).total_seconds())
        except Exception:  # noqa: BLE001  (product code that catches too much still dies)
            reached.append("caught")
        reached.append("went on")

    invocations.start(forever, ends.append, name="slow", timeout=30)
    timeline.run_until(START + 7200)
    assert reached == []
    assert (ends[0].killed, ends[0].error) == (True, "Sandbox.Timedout")
    assert not issubclass(Killed, Exception)


def test_an_error_of_the_function_is_reported_by_its_class():
    timeline, ends = Timeline(), []

    def broken():
        raise KeyError("x")

    Invocations(timeline).start(broken, ends.append, name="broken", timeout=30)
    timeline.run_until(START + 1)
    assert (ends[0].error, ends[0].killed) == ("KeyError", False)
