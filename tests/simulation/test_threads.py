"""Functions that work in threads: greenlets of one invocation, which take turns and die together."""

from random import Random

import pytest

from leeward.isolation import attempt
from simulation.faults import Killed
from simulation.invocations import Invocations
from simulation.timeline import Timeline


class Bench:
    """A timeline with invocations; `log` takes what the threads do."""

    def __init__(self, seed=1):
        self.timeline = Timeline()
        self.begun = self.timeline.now()
        self.invocations = Invocations(self.timeline)
        self.dice = Random(seed)
        self.log = []
        self.ended = []

    def run(self, function, timeout=100.0):
        self.invocations.start(function, self.ended.append, name="sweep", timeout=timeout)
        self.timeline.run_until(self.begun + 1000)
        assert not self.invocations._running
        return self.ended[0]

    def pool(self, do, items, workers=16):
        return self.invocations.side_by_side(do, items, workers, random=self.dice)

    def slow(self, item):
        self.log.append(f"{item} begins")
        self.invocations.sleep(10 - item)
        self.log.append(f"{item} ends")
        return item * item


def test_items_are_handled_at_the_same_time_and_their_results_keep_their_order():
    bench = Bench()
    ended = bench.run(lambda: (bench.pool(bench.slow, (1, 2, 3)), bench.timeline.now() - bench.begun))
    results, seconds = ended.result
    assert results == [1, 4, 9]
    assert 9 <= seconds < 9.1
    assert sorted(bench.log[:3]) == ["1 begins", "2 begins", "3 begins"]
    assert bench.log[3:] == ["3 ends", "2 ends", "1 ends"]


def test_no_more_items_than_workers_are_under_way():
    bench = Bench()
    bench.run(lambda: bench.pool(bench.slow, (1, 2, 3), 2))
    assert bench.log[:3] == ["1 begins", "2 begins", "2 ends"] or bench.log[:3] == ["2 begins", "1 begins", "2 ends"]


def test_a_thread_may_have_a_pool_of_its_own():
    bench = Bench()
    ended = bench.run(lambda: bench.pool(lambda n: sum(bench.pool(bench.slow, (n, n + 1))), (1, 5)))
    assert ended.result == [1 + 4, 25 + 36]


def test_a_single_item_stays_in_the_thread_of_its_caller():
    bench = Bench()
    before = bench.timeline._sequence
    assert bench.run(lambda: bench.pool(lambda item: item, (1,))).result == [1]
    assert bench.timeline._sequence - before == 2  # the time-out and the end: nothing of a pool


def test_outside_of_an_invocation_items_are_handled_in_turn():
    bench = Bench()
    assert bench.pool(bench.slow, (1, 2)) == [1, 4]
    assert bench.log == ["1 begins", "1 ends", "2 begins", "2 ends"]


def test_the_first_error_in_the_order_of_the_items_is_raised_once_all_have_ended():
    bench = Bench()

    def fails(item):
        bench.slow(item)
        if item > 1:
            raise KeyError(item)

    ended = bench.run(lambda: bench.pool(fails, (1, 2, 3)))
    assert (ended.error, ended.cause) == ("KeyError", "2")
    assert len([line for line in bench.log if line.endswith("ends")]) == 3


@pytest.mark.parametrize("workers", [1, 2, 16])
def test_a_killed_thread_takes_its_whole_process_along(workers):
    bench = Bench()

    def dies(item):
        if item == 2:
            bench.invocations.sleep(1)
            raise Killed("before a call")
        bench.slow(item)

    ended = bench.run(lambda: attempt(lambda: bench.pool(dies, (2, 3, 4), workers)))
    assert (ended.error, ended.killed) == ("Lambda.Unknown", True)
    assert not [line for line in bench.log if line.endswith("ends")]


def test_a_time_out_ends_every_thread_also_those_that_have_not_begun():
    bench = Bench()
    ended = bench.run(lambda: bench.pool(bench.slow, (1, 2, 3), 2), timeout=0.0001)
    assert ended.error == "Sandbox.Timedout"
    late = Bench()
    assert late.run(lambda: late.pool(late.slow, (1, 2, 3), 2), timeout=8.5).error == "Sandbox.Timedout"
    assert [line for line in late.log if line.endswith("ends")] == ["2 ends"]


def test_threads_give_way_to_each_other_and_the_same_dice_give_the_same_order():
    def orders(seed):
        bench = Bench(seed)

        def calls(item):
            for number in range(6):
                bench.invocations.give_way(bench.dice)
                bench.log.append((item, number))

        bench.run(lambda: bench.pool(calls, (1, 2)))
        return bench.log

    assert orders(1) == orders(1)
    assert len({tuple(orders(seed)) for seed in range(5)}) > 1
    assert any(one[0] != other[0] for one, other in zip(orders(1), orders(1)[1:], strict=False) if one[1] < 5)


def test_the_only_thread_of_an_invocation_gives_way_to_none():
    bench = Bench()
    ended = bench.run(lambda: [bench.invocations.give_way(bench.dice) for _ in range(50)])
    assert ended.error == ""
    assert bench.timeline.happened == 1
