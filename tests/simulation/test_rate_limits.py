"""AWS's limits in virtual time: token buckets with the SDK's retries, and the reserved concurrency of functions."""

from random import Random

import pytest

from infra.settings import Settings
from leeward.adapters.aws.clients import ATTEMPTS
from leeward.errors import ThrottledError
from simulation import functions
from simulation.aws.rate_limits import (
    AUTO_SCALING_ASSUMPTION,
    DESCRIBE_INSTANCES,
    EC2_DESCRIBE,
    TERMINATE,
    RateLimits,
)
from simulation.fault_rates import Faults
from simulation.invocations import Ended
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL


class Clock:
    def __init__(self):
        self.now, self.slept = 0.0, []

    def sleep(self, seconds):
        self.slept.append(seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def limits(clock):
    return RateLimits(lambda: clock.now, clock.sleep, Random(1))


def admitted(limits, *call):
    count = 0
    while True:
        try:
            limits.admit(*call)
        except ThrottledError:
            return count
        count += 1


def test_each_api_of_ec2_has_a_hundred_calls_at_once_and_then_what_neighbours_leave(limits, clock):
    assert admitted(limits, "instances", "describe", (["i-1"],)) == EC2_DESCRIBE.size == 100
    assert admitted(limits, "network", "subnets", (["subnet-1"],)) == 100
    clock.now = 4.0
    assert admitted(limits, "instances", "describe", (["i-1"],)) == 4 * (EC2_DESCRIBE.refill - EC2_DESCRIBE.neighbours)


def test_a_bucket_holds_no_more_than_its_size(limits, clock):
    admitted(limits, "instances", "describe", (["i-1"],))
    clock.now = 3600.0
    assert admitted(limits, "instances", "describe", (["i-1"],)) == 100


def test_all_calls_of_auto_scaling_share_one_bucket(limits):
    assert admitted(limits, "groups", "describe", (["web"],)) == AUTO_SCALING_ASSUMPTION.size
    assert admitted(limits, "groups", "complete", ()) == 0


def test_one_request_about_many_instances_counts_once(limits):
    limits.admit("instances", "describe", ([f"i-{number}" for number in range(200)],))
    assert limits.attempts[DESCRIBE_INSTANCES] == 1
    limits.admit("instances", "describe", ([f"i-{number}" for number in range(201)],))
    assert limits.attempts[DESCRIBE_INSTANCES] == 3


def test_no_ids_make_no_call(limits):
    limits.admit("instances", "describe", ([],))
    assert not limits.attempts


def test_a_throttled_call_is_tried_as_often_as_the_sdk_does_with_longer_waits(limits, clock):
    admitted(limits, "instances", "describe", (["i-1"],))
    assert limits.throttled[DESCRIBE_INSTANCES] == ATTEMPTS
    assert len(clock.slept) == ATTEMPTS - 1
    assert all(0 <= seconds <= 2.0**attempt for attempt, seconds in enumerate(clock.slept))


def test_a_termination_is_asked_for_once(limits):
    admitted(limits, "groups", "heartbeat", ())
    with pytest.raises(ThrottledError):
        limits._call(TERMINATE)
    assert limits.throttled[TERMINATE] == 1


def test_hooks_are_read_once_a_minute_in_each_environment(clock):
    asking = ["drain-1"]
    limits = RateLimits(lambda: clock.now, clock.sleep, Random(1), lambda: asking[-1])
    for environment in ("drain-1", "drain-1", "drain-2", "drain-2"):
        asking.append(environment)
        limits.admit("groups", "hooks", ("web",))
    assert limits.attempts["autoscaling:DescribeLifecycleHooks"] == 2
    clock.now = 61.0
    limits.admit("groups", "hooks", ("web",))
    assert limits.attempts["autoscaling:DescribeLifecycleHooks"] == 3


def test_calls_of_dynamodb_and_kubernetes_are_not_limited(limits):
    for _ in range(1000):
        limits.admit("claims", "read", ("i-1",))
        limits.admit("kubernetes", "nodes", ())
    assert not limits.attempts


@pytest.mark.parametrize("buckets", [True, False])
def test_a_world_has_limits_where_its_faults_say_so(buckets):
    assert (World(1, SMALL, Faults(token_buckets=buckets), ()).injector.limits is not None) is buckets


def test_ids_that_come_one_by_one_are_counted_and_still_asked_for():
    world = World(1, SMALL, Faults(token_buckets=True), ())
    world._populate()
    world.injector.active = True
    known = world.system.ports.instances.describe(name for name in list(world.fleet.instances))
    assert set(known) == set(world.fleet.instances) != set()


def test_the_simulated_concurrency_is_what_the_settings_reserve_by_default():
    assert functions.CONCURRENCY["drain"] == Settings(clusters=(), node_roles=()).drain_concurrency


def test_a_call_beyond_the_reserved_concurrency_is_throttled_and_one_after_it_is_served():
    world = World(1, SMALL, Faults.none(), ())
    system, ended = world.system, list[Ended]()
    system.concurrency["drain"], system.call_seconds = 2, 5.0
    call = {"step": "drain", "run": {"instance": "i-0abc"}}

    def drain():
        system._invoke("drain", call, ended.append)

    for _ in range(3):
        drain()
    world.timeline.run_until(world.timeline.now() + 1)
    assert [one.error for one in ended] == ["Lambda.TooManyRequestsException"]
    assert system.throttles["drain"] == 1
    world.timeline.run_until(world.timeline.now() + 10)
    drain()
    world.timeline.run_until(world.timeline.now() + 10)
    assert system.throttles["drain"] == 1
    assert len(ended) == 4
