"""Faults: each kind can happen, is counted, and ends when faults end."""

import json
from contextlib import suppress
from dataclasses import fields
from datetime import datetime, timedelta
from random import Random

import pytest

from leeward.errors import AwsUnavailableError, ClusterUnreachableError, LeewardError, ThrottledError
from leeward.interruption.parse import PARSERS
from leeward.model.termination import Cause, CauseKind, Outcome
from simulation.aws import events
from simulation.aws.bus import DETAIL_TYPES, Bus, let_through
from simulation.aws.executions import SimExecutions
from simulation.aws.queue import RECEIVES, Queue
from simulation.aws.table import KEPT, SimClaims
from simulation.fault_rates import Faults
from simulation.faults import FaultyPort, Injector, Killed
from simulation.invocations import Invocations, SimClock
from simulation.machine.machine import StateMachine
from simulation.timeline import START, Streams, Timeline
from tests.fakes.builders import a_subject


class Counter:
    """A port with one method."""

    def __init__(self):
        self.calls = 0

    def count(self, by=1):
        self.calls += by
        return self.calls


def an_injector(timeline=None, **rates):
    return Injector(Faults(**rates), Streams(1), timeline or Timeline(), lambda _seconds: None)


def test_no_faults_are_no_faults_and_all_are_all():
    assert Faults.none() == Faults()
    unset = {f.name for f in fields(Faults) if not getattr(Faults.all(), f.name)}
    of_some_seeds = {
        "api_hangs_per_hour",
        "api_slow_per_hour",
        "forbidden_seconds",
        "webhooks_per_hour",
        "token_buckets",
        "table_outages_per_hour",
        "queue_outages_per_hour",
        "concurrency_outages_per_hour",
        "very_late_event",
    }
    assert unset == {"kill_call", "kill_after", *of_some_seeds}
    assert Faults.all().without("throttle_aws").throttle_aws == 0


@pytest.mark.parametrize(
    ("rates", "error", "effect"),
    [
        ({"kill_before": 1}, Killed, 0),
        ({"throttle_aws": 1}, ThrottledError, 0),
        ({"kill_after_call": 1}, Killed, 1),
        ({"lose_answer": 1}, AwsUnavailableError, 1),
        ({"kill_call": 1}, Killed, 0),
        ({"kill_call": 1, "kill_after": True}, Killed, 1),
    ],
)
def test_a_fault_comes_before_or_after_the_effect_of_a_call(rates, error, effect):
    port, injector = Counter(), an_injector(**rates)
    with pytest.raises(error):
        FaultyPort(port, "counter", injector).count()
    assert port.calls == effect
    assert injector.counts.total() == 1


def test_without_faults_a_call_goes_through_with_its_arguments_and_answer():
    assert FaultyPort(Counter(), "counter", an_injector()).count(by=3) == 3


def test_a_kill_is_seen_by_no_product_code():
    port = FaultyPort(Counter(), "counter", an_injector(kill_before=1))
    with pytest.raises(Killed), suppress(LeewardError, Exception):
        port.count()


def test_faults_end_when_they_are_stopped():
    injector = an_injector(kill_before=1, throttle_aws=1, capacity_error=1, kubernetes_failed=1)
    injector.api_down_until = START + 100
    injector.stop()
    assert FaultyPort(Counter(), "counter", injector).count() == 1
    assert not injector.no_capacity("a")
    injector.disturb("list nodes")


@pytest.mark.parametrize("trouble", ["api_down_until", "api_hangs_until", "api_slow_until"])
def test_trouble_that_ends_with_the_faults_is_known_to_have_lasted_until_then(trouble):
    timeline = Timeline()
    injector = an_injector(timeline)
    setattr(injector, trouble, timeline.now() + 600)
    timeline.run_until(timeline.now() + 100)
    injector.stop()
    assert not injector.troubled(0)
    assert injector.troubled(1)
    timeline.run_until(timeline.now() + 60)
    assert not injector.troubled(60)


def test_kubernetes_has_troubles_of_its_own():
    with pytest.raises(ThrottledError):
        an_injector(kubernetes_throttled=1).disturb("list nodes")
    with pytest.raises(ClusterUnreachableError):
        an_injector(kubernetes_failed=1).disturb("list nodes")
    down = an_injector()
    down.api_down_until = START + 1
    with pytest.raises(ClusterUnreachableError):
        down.disturb("list nodes")


def deliveries(event, **rates):
    timeline, seen = Timeline(), []
    bus = Bus(timeline, an_injector(timeline, **rates), lambda body: seen.append((timeline.now() - START, body)))
    bus.emit(event)
    timeline.run_until(START + 1000)
    return seen


def a_warning():
    return events.spot_warning("e-1", "i-0abc", Timeline().instant())


def test_an_event_arrives_once_and_soon_twice_or_late():
    ((soon, body),) = deliveries(a_warning())
    assert soon < 1
    assert json.loads(body)["detail"]["instance-id"] == "i-0abc"
    assert len(deliveries(a_warning(), duplicate_event=1)) == 2
    assert deliveries(a_warning(), delay_event=1)[0][0] >= 10


def test_only_lifecycle_events_are_lost():
    assert deliveries(a_warning(), lose_lifecycle_event=1)
    hook = events.lifecycle_action("e", _hook(), "i-0abc", "t", Timeline().instant())
    assert deliveries(hook)
    assert deliveries(hook, lose_lifecycle_event=1) == []


@pytest.mark.parametrize("rates", [{}, {"duplicate_event": 1, "reorder_event": 1}, {"delay_event": 1}])
def test_the_bus_remembers_when_the_first_event_of_an_ending_comes(rates):
    timeline, came = Timeline(), []
    bus = Bus(timeline, an_injector(timeline, **rates), lambda _: came.append(timeline.now()))
    for at in (START, START + 1000):
        timeline.run_until(at)
        bus.emit(events.lifecycle_action("e", _hook(), "i-0abc", "t", timeline.instant()))
        heard = bus.heard["i-0abc"]
        timeline.run_until(at + 999)
        assert min(when for when in came if when >= at) == heard


def test_of_an_ending_whose_event_was_lost_the_bus_hears_nothing():
    bus = Bus(Timeline(), an_injector(lose_lifecycle_event=1), lambda _: None)
    bus.emit(events.lifecycle_action("e", _hook(), "i-0abc", "t", Timeline().instant()))
    assert bus.heard == {}


def _hook():
    from leeward.model.group import TERMINATING, LifecycleHook

    return LifecycleHook(name="h", group="g", transition=TERMINATING)


def test_the_bus_lets_through_what_the_rules_match():
    now = Timeline().instant()
    assert let_through(events.state_change("e", "i-0abc", "stopping", now))
    assert not let_through(events.state_change("e", "i-0abc", "running", now))
    assert let_through(events.execution_status("e", "i-0abc-1", "ABORTED", now))
    assert not let_through(events.execution_status("e", "i-0abc-1", "SUCCEEDED", now))
    assert not let_through({"source": "acme", "detail-type": "Hello", "detail": {}})


def a_queue(consumer):
    timeline = Timeline()
    queue = Queue(timeline, Invocations(timeline))
    queue.consumer = consumer
    return queue, timeline


def test_a_message_that_fails_comes_back_until_it_is_redriven():
    seen = []

    def fail(batch):
        seen.append([message.id for message in batch])
        return seen[-1]

    queue, timeline = a_queue(fail)
    queue.send("{}")
    timeline.run_until(START + 7200)
    assert len(seen) == RECEIVES
    assert queue.depth == 0
    assert [letter.reason for letter in queue.dead_letters] == ["redriven"]


def test_one_of_a_batch_fails_alone_and_a_killed_batch_comes_back_whole():
    seen, broken = [], [Killed("now")]

    def consume(batch):
        seen.append([message.body for message in batch])
        if broken:
            raise broken.pop()
        return [message.id for message in batch if message.body == "bad" and message.receives == 2]

    queue, timeline = a_queue(consume)
    for body in ("good", "bad"):
        queue.send(body)
    timeline.run_until(START + 3600)
    assert seen == [["good", "bad"], ["good", "bad"], ["bad"]]
    assert (queue.depth, queue.handled) == (0, 2)


def test_a_batch_that_dies_comes_back_before_a_hook_of_two_minutes_ends():
    """A lifecycle action whose invocation hangs until its time-out is not lost for the reconciler alone to find."""
    seen = []

    def consume(batch):
        seen.append(timeline.now() - START)
        if len(seen) == 1:
            invocations.sleep(3600)
        return []

    timeline = Timeline()
    invocations = Invocations(timeline)
    queue = Queue(timeline, invocations)
    queue.consumer = consume
    queue.send("{}")
    timeline.run_until(START + 3600)
    assert (len(seen), queue.handled) == (2, 1)
    assert seen[1] < 90


def test_redelivery_can_be_asked_for_sooner():
    seen = []

    def consume(batch):
        seen.append(timeline.now() - START)
        queue.change_visibility(batch[0].receipt, 2)
        return [batch[0].id] if len(seen) == 1 else []

    queue, timeline = a_queue(consume)
    queue.send("{}")
    timeline.run_until(START + 3600)
    assert [round(at) for at in seen] == [1, 3]


def environments(injector, timeline, invocations, *bodies):
    """What the clocks of invocations of one function say, against the true time in seconds."""
    clock, off = SimClock(timeline, invocations, injector.clock_skew), []

    def send():
        off.append((clock.now() - timeline.instant()).total_seconds())

    for body in bodies or (send,):
        invocations.start(lambda body=body: (send(), body()), lambda _ended: None, name="drain look", timeout=60)
        timeline.run_until(timeline.now() + 1)
    return off


def a_skewed_clock():
    timeline = Timeline()
    return an_injector(timeline, clock_skew_seconds=1), timeline, Invocations(timeline)


def nothing():
    pass


def test_the_clock_of_an_execution_environment_is_off_by_a_constant_of_its_own():
    injector, timeline, invocations = a_skewed_clock()
    one, again = environments(injector, timeline, invocations, nothing, nothing)
    assert one == again
    assert 0 < abs(one) <= 1
    assert injector.counts["clock skewed"] == 1


def test_invocations_side_by_side_and_after_a_kill_have_environments_of_their_own():
    injector, timeline, invocations = a_skewed_clock()

    def die():
        raise Killed("now")

    found = environments(injector, timeline, invocations, lambda: invocations.sleep(5), die, nothing)
    assert len(set(found)) == 3


def test_clocks_are_right_outside_of_invocations_and_when_faults_are_over():
    injector, timeline, invocations = a_skewed_clock()
    assert SimClock(timeline, invocations, injector.clock_skew).now() == timeline.instant()
    injector.stop()
    assert environments(injector, timeline, invocations, nothing) == [0]


def test_services_write_their_own_time_into_events():
    ((_, body),) = deliveries(a_warning())
    assert json.loads(body)["time"] == a_warning()["time"]
    timeline = Timeline()
    injector = an_injector(timeline, event_skew_seconds=2)
    off = {
        (datetime.fromisoformat(injector.skewed(a_warning())["time"]) - timeline.instant()).total_seconds()
        for _ in range(100)
    }
    assert off == {-2, -1, 0, 1, 2}
    injector.stop()
    assert injector.skewed(a_warning()) == a_warning()


def test_a_call_that_hangs_is_ended_by_the_time_out_of_its_function():
    timeline, ended = Timeline(), []
    invocations = Invocations(timeline)
    injector = Injector(Faults(call_hangs=1), Streams(1), timeline, invocations.sleep)
    port = Counter()
    call = FaultyPort(port, "counter", injector).count
    invocations.start(call, lambda end: ended.append((timeline.now() - START, end)), name="drain wait", timeout=55)
    timeline.run_until(START + 10_000)
    ((when, end),) = ended
    assert (when, end.error, end.killed, port.calls) == (55, "Sandbox.Timedout", True, 0)
    assert injector.counts["call hangs"] == 1


def test_a_reset_comes_before_the_effect_of_a_request_or_after_it():
    injector = an_injector(kubernetes_reset=2)  # half of it on either side
    with pytest.raises(ClusterUnreachableError, match="before its effect"):
        injector.disturb("patch nodes")
    with pytest.raises(ClusterUnreachableError, match="after its effect"):
        injector.lose_answer("patch nodes")
    assert injector.counts["Kubernetes reset"] == 2
    injector.stop()
    injector.lose_answer("patch nodes")


def a_table(**rates):
    timeline = Timeline()
    injector, table = an_injector(timeline, **rates), SimClaims()
    table.index.behind(timeline.now, injector)
    return table, timeline, injector


def claim(table, instance, timeline):
    cause = Cause(id=f"c-{instance}", kind=CauseKind.SPOT_INTERRUPTION, at=timeline.instant())
    return table.claim(a_subject(instance), cause, timeline.instant())


def close(table, record, timeline):
    table.close(record.instance, version=record.version, outcome=Outcome.TERMINATED, now=timeline.instant())


def test_the_index_of_open_records_misses_new_ones_and_lists_closed_ones_for_a_while():
    table, timeline, injector = a_table(index_lag_seconds=10)
    old = claim(table, "i-old", timeline)
    timeline.run_until(START + 100)
    close(table, old, timeline)
    claim(table, "i-new", timeline)
    timeline.run_until(START + 101)
    answers = {table.open_instances() for _ in range(100)}
    assert answers == {("i-old",), ("i-new",)}
    assert 50 < injector.counts["index behind"] < 100
    timeline.run_until(START + 111)
    assert {table.open_instances() for _ in range(100)} == {("i-new",)}


def test_a_list_of_executions_is_behind_as_well():
    timeline = Timeline()
    injector = an_injector(timeline, index_lag_seconds=10)
    machine = StateMachine(
        {"StartAt": "Rest", "States": {"Rest": {"Type": "Wait", "Seconds": 900, "End": True}}},
        timeline,
        Random(1),
        invoke=lambda *_: None,
        pause=lambda _: "",
        ended=lambda _: None,
    )
    machine.listed.behind(timeline.now, injector)
    executions = SimExecutions(machine)
    timeline.run_until(START + 100)
    executions.start("i-0abc", 1)
    timeline.run_until(START + 101)
    assert {executions.all_running() for _ in range(100)} == {frozenset(), frozenset({"i-0abc-1"})}
    machine.stop("i-0abc-1")
    timeline.run_until(START + 112)
    assert executions.all_running() == frozenset()


def test_the_index_is_up_to_date_when_faults_are_over():
    table, timeline, injector = a_table(index_lag_seconds=10)
    injector.stop()
    claim(table, "i-new", timeline)
    assert table.open_instances() == ("i-new",)
    assert not injector.counts


def test_what_has_outlived_its_time_is_deleted_hours_later():
    table, timeline, injector = a_table(expiry_lag_hours=6)
    close(table, claim(table, "i-old", timeline), timeline)
    due = timeline.instant() + KEPT
    table.expire(due, injector.expiry_lag)
    assert not injector.counts
    table.expire(due + timedelta(seconds=1), injector.expiry_lag)
    assert "i-old" in table.records
    table.expire(due + timedelta(hours=6, seconds=1), injector.expiry_lag)
    assert table.records == {}
    assert injector.counts["expired late"] == 1


def test_without_faults_the_table_deletes_in_time():
    table, timeline, injector = a_table()
    close(table, claim(table, "i-old", timeline), timeline)
    table.expire(timeline.instant() + KEPT + timedelta(seconds=1), injector.expiry_lag)
    assert table.records == {}


def test_the_bus_lets_through_every_event_that_the_product_reads():
    assert set(PARSERS) == DETAIL_TYPES
