"""One call per node group and span, however many ask; a failure is said once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from leeward.errors import AccessDeniedError, InvalidInputError, ThrottledError
from leeward.node_template.cache import NodegroupCache
from tests.fakes.clock import FakeClock
from tests.fakes.nodegroups import FakeNodegroups
from tests.unit.node_template.builders import a_nodegroup

MINUTE = timedelta(minutes=1)
DENIED = AccessDeniedError("denied")


class World:
    """A cache over one node group, `web` of `blue`; `chance` is the jitter's."""

    def __init__(self, chance=0.0):
        self.clock = FakeClock()
        self.eks = FakeNodegroups([a_nodegroup()])
        self.said = []
        self.cache = NodegroupCache(self.eks, self.clock, chance=lambda: chance, say=self.said.append)

    def get(self, name="web", lasts=MINUTE):
        return self.cache.get("blue", name, lasts)

    @property
    def calls(self):
        return self.eks.asked["describe"]


@pytest.fixture
def world():
    return World()


def test_a_hundred_threads_at_once_make_one_call(world):
    together = threading.Barrier(100)
    describing = world.eks.describe
    overlapping, waits = [], threading.Event()

    def slow(cluster, name):
        overlapping.append(name)
        waits.wait(0.05)  # long enough for all others to arrive
        return describing(cluster, name)

    world.eks.describe = slow

    def ask(_):
        together.wait()
        return world.get()

    with ThreadPoolExecutor(100) as threads:
        found = list(threads.map(ask, range(100)))
    assert overlapping == ["web"]
    assert {one.name for one in found} == {"web"}


def test_a_group_that_is_slow_to_describe_holds_up_no_other(world):
    begun, release = threading.Event(), threading.Event()
    describing = world.eks.describe

    def describe(cluster, name):
        if name == "web":
            begun.set()
            assert release.wait(10)
        return describing(cluster, name)

    world.eks.describe = describe
    with ThreadPoolExecutor(1) as other:
        slow = other.submit(world.get)
        assert begun.wait(10)
        assert world.get("another") is None
        release.set()
        assert slow.result(10).name == "web"


def test_the_jitter_makes_the_span_longer_by_a_tenth_at_most_and_never_shorter():
    world = World(chance=1.0)
    world.get()
    world.clock.advance(seconds=65.9)
    world.get()
    assert world.calls == 1
    world.clock.advance(seconds=0.1)
    world.get()
    assert world.calls == 2


def test_the_policys_ttl_counts_where_it_is_another(world):
    world.get(lasts=timedelta(minutes=5))
    world.clock.advance(minutes=4)
    world.get(lasts=timedelta(minutes=5))
    assert world.calls == 1


@pytest.mark.parametrize("error", [DENIED, ThrottledError("slow down"), InvalidInputError("taint x: found effect")])
def test_any_error_means_the_tags_alone_and_is_never_the_callers(world, error):
    world.eks.fail("describe", error)
    assert world.get() is None


def test_a_failure_is_kept_as_long_as_an_answer_and_then_asked_for_again(world):
    world.eks.fail("describe", DENIED, times=1)
    assert [world.get() for _ in range(100)] == [None] * 100
    assert world.calls == 1
    world.clock.advance(seconds=60)
    assert world.get().name == "web"


def test_a_failure_is_said_once_however_long_it_lasts(world):
    world.eks.fail("describe", DENIED)
    for _ in range(10):
        world.get()
        world.clock.advance(minutes=2)
    assert world.said == ["node group web of blue: only the group's tags are used: denied"]


def test_another_failure_and_one_after_a_success_are_said_again(world):
    for error in (DENIED, ThrottledError("slow down"), None, ThrottledError("slow down")):
        if error:
            world.eks.fail("describe", error, times=1)
        world.get()
        world.clock.advance(minutes=2)
    assert [line.rsplit(": ", 1)[1] for line in world.said] == ["denied", "slow down", "slow down"]


def test_the_same_name_in_two_clusters_is_two_node_groups(world):
    world.eks.known["green", "web"] = a_nodegroup(clusterName="green")
    assert (world.cache.get("blue", "web", MINUTE).cluster, world.cache.get("green", "web", MINUTE).cluster) == (
        "blue",
        "green",
    )
