"""EKS, "Managed node update behavior": its numbers, row by row (U3, U5, U15, U16, V1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.errors import InvalidInputError
from leeward.policy.document import UpdatePolicy
from leeward.upgrade.surge.sizes import (
    Size,
    Strategy,
    launch_now,
    max_surge,
    most_ahead,
    most_extra,
    next_increment,
    parallelism,
    sizes,
    surge,
    unassigned_limit,
)


def percent(share):
    return UpdatePolicy(max_unavailable=None, max_unavailable_percentage=share)


def test_one_node_at_a_time_is_the_default():
    assert parallelism(UpdatePolicy(), 50) == 1


@pytest.mark.parametrize(
    ("share", "nodes", "found"), [(10, 100, 10), (33, 10, 4), (1, 5, 1), (100, 500, 100), (50, 0, 1)]
)
def test_percentages_are_rounded_up_and_capped_at_a_hundred_nodes(share, nodes, found):
    assert parallelism(percent(share), nodes) == found


@pytest.mark.parametrize("value", [0, -1, 101])
def test_values_outside_one_to_a_hundred_are_refused(value):
    with pytest.raises(InvalidInputError, match="expected a whole number from 1 to 100"):
        parallelism(UpdatePolicy(max_unavailable=value), 10)
    with pytest.raises(InvalidInputError, match="maxUnavailablePercentage"):
        parallelism(percent(value), 10)


def test_exactly_one_maximum_is_expected():
    with pytest.raises(InvalidInputError, match="found both"):
        parallelism(UpdatePolicy(max_unavailable=1, max_unavailable_percentage=1), 10)
    with pytest.raises(InvalidInputError, match="found neither"):
        parallelism(percent(None), 10)


@pytest.mark.parametrize(("zones", "parallel", "found"), [(5, 1, 10), (5, 20, 20), (5, 10, 10), (1, 1, 2), (3, 7, 7)])
def test_the_surge_is_the_larger_of_twice_the_zones_and_the_parallelism(zones, parallel, found):
    assert surge(Strategy.DEFAULT, zones, parallel) == found


@pytest.mark.parametrize(
    ("policy", "nodes", "found"),
    [
        (UpdatePolicy(max_surge=7), 100, 7),
        (UpdatePolicy(max_surge=10, max_surge_percent=True), 25, 3),
        (UpdatePolicy(max_surge=1, max_surge_percent=True), 0, 1),
    ],
)
def test_max_surge_is_a_number_or_a_share_rounded_up_to_one_at_least(policy, nodes, found):
    assert max_surge(policy, nodes) == found


@pytest.mark.parametrize("most", [1, 4, 10, 25])
def test_never_more_new_nodes_than_max_surge_come_ahead(most):
    limit = surge(Strategy.DEFAULT, 3, 10, most)
    assert limit == min(10, most)
    assert unassigned_limit(Strategy.DEFAULT, limit, 10, most) == most
    assert most_ahead(limit, 10, most) == most
    assert most_extra(Strategy.DEFAULT, limit, 10, 100, most) == most


def test_without_max_surge_as_many_come_as_shorten_the_upgrade():
    limit = surge(Strategy.DEFAULT, 3, 10, max_surge(UpdatePolicy(), 100))
    assert (limit, most_extra(Strategy.DEFAULT, limit, 10, 100)) == (10, 40)


def test_the_sizes_grow_by_no_more_nodes_than_are_replaced():
    assert [most_extra(Strategy.DEFAULT, 20, 20, old) for old in (0, 1, 3, 30)] == [0, 1, 3, 30]


def test_incremental_stops_at_max_surge():
    assert surge(Strategy.INCREMENTAL, 3, 1, 2) == 2
    assert next_increment(0, 3, 3, 2) == 2
    assert next_increment(2, 3, 1, 2) is None
    assert next_increment(3, 3, 1, 4) == 1
    assert most_extra(Strategy.INCREMENTAL, 3, 1, 9, 4) == 4


def test_minimal_has_no_surge_and_incremental_begins_with_one_for_each_zone():
    assert surge(Strategy.MINIMAL, 5, 20) == 0
    assert surge(Strategy.INCREMENTAL, 5, 20) == 5


def test_both_sizes_grow_by_the_surge_and_are_restored():
    found = sizes(desired=6, maximum=8, extra=10)
    assert (found.desired, found.maximum) == (Size(before=6, during=16, after=6), Size(before=8, during=18, after=8))


def test_incremental_adds_one_at_a_time_until_every_zone_has_a_new_node():
    assert next_increment(0, 3, 3) == 3
    assert next_increment(3, 3, 1) == 1
    assert next_increment(4, 3, 0) == 0


def test_incremental_fails_when_the_increase_reaches_twice_the_zones():
    assert next_increment(4, 3, 1) == 1
    assert next_increment(5, 3, 1) is None
    assert next_increment(1, 1, 1) is None


def test_new_nodes_are_launched_up_to_the_surge_and_never_more_than_old_ones_are_left():
    assert launch_now(surge_limit=6, alive=0, gone=0, old_left=20) == 6
    assert launch_now(surge_limit=6, alive=6, gone=2, old_left=18) == 2
    assert launch_now(surge_limit=6, alive=0, gone=0, old_left=2) == 2
    assert launch_now(surge_limit=6, alive=20, gone=18, old_left=2) == 0
    assert launch_now(surge_limit=6, alive=20, gone=20, old_left=0) == 0
    assert launch_now(surge_limit=0, alive=0, gone=0, old_left=9) == 0


@pytest.mark.parametrize(
    ("strategy", "limit", "pace", "found"),
    [
        (Strategy.DEFAULT, 50, 50, 150),
        (Strategy.DEFAULT, 6, 1, 6),
        (Strategy.DEFAULT, 50, 0, 50),
        (Strategy.INCREMENTAL, 3, 50, 3),
        (Strategy.MINIMAL, 0, 50, 0),
    ],
)
def test_while_nodes_leave_those_of_three_turns_are_kept_in_store_if_that_is_more(strategy, limit, pace, found):
    assert unassigned_limit(strategy, limit, pace) == found


@given(st.integers(1, 60), st.integers(0, 20), st.randoms(use_true_random=False))
def test_every_old_node_offsets_one_new_one_and_the_sizes_are_restored(old, limit, chance):
    """Whatever happens first, launches or terminations: never above the surge, and at the end the old size."""
    alive = gone = 0
    while gone < old:
        launch = launch_now(surge_limit=max(limit, 1), alive=alive, gone=gone, old_left=old - gone)
        if launch and chance.random() < 0.7:
            alive += chance.randint(1, launch)
        elif alive > gone:
            gone += 1
        assert 0 <= alive - gone <= max(limit, 1)
        assert alive <= old
    assert alive == gone == old
