"""The yardstick itself, where the answer can be seen."""

import itertools
import random

import pytest

from tests.unit.disruption.exact_packing import Offer, cheapest, cheapest_allowed

SMALL, LARGE = Offer(room=(4, 100, 100), price=1.0), Offer(room=(9, 100, 100), price=2.0)


def pods(*sizes):
    return [(size, 1, 1) for size in sizes]


@pytest.mark.parametrize(
    ("sizes", "offers", "price"),
    [
        ((), [SMALL], 0.0),
        ((4,), [SMALL, LARGE], 1.0),
        ((5,), [SMALL, LARGE], 2.0),
        ((3, 3, 3), [SMALL, LARGE], 2.0),
        ((4, 4, 1), [SMALL, LARGE], 2.0),
        ((2, 2, 2, 2), [SMALL], 2.0),
        ((3, 3, 2, 2, 2), [Offer(room=(6, 100, 100), price=1.0)], 2.0),  # first fit would need three
        ((10,), [SMALL, LARGE], float("inf")),
    ],
)
def test_the_cheapest_nodes_are_found(sizes, offers, price):
    assert cheapest(pods(*sizes), offers) == price


def test_a_minimum_is_paid_for_and_used():
    kept = Offer(room=(9, 100, 100), price=2.0, minimum=1)
    assert cheapest([], [SMALL, kept]) == 2.0
    assert cheapest(pods(4, 4), [SMALL, kept]) == 2.0
    assert cheapest(pods(4, 4, 4), [SMALL, kept]) == 3.0


def test_every_amount_counts():
    offers = [Offer(room=(9, 2, 100), price=1.0), Offer(room=(9, 9, 1), price=0.4)]
    assert cheapest([(1, 2, 1), (1, 2, 1)], offers) == pytest.approx(0.8)


CHEAP = Offer(room=(4, 100, 100), price=0.5)


@pytest.mark.parametrize(
    ("sizes", "offers", "present", "price"),
    [
        ((9,), [LARGE], (2.0,), 2.0),  # it stays
        ((4, 4), [SMALL, LARGE], (2.0, 2.0), 2.0),
        ((9,), [SMALL, LARGE], (1.0, 1.0, 1.0), 2.0),  # three become one that is cheaper than they are together
        ((9,), [SMALL, LARGE], (1.0, 1.0), float("inf")),  # two would become one that is not
        ((9, 4, 4, 4, 4), [CHEAP, LARGE], (2.0,) * 5, 4.0),
        ((9, 4, 4, 4, 4), [CHEAP, LARGE], (2.0,) * 4, 5.0),  # three can go, and no more than three cheap ones come
    ],
)
def test_each_node_at_the_end_stands_for_nodes_of_its_own(sizes, offers, present, price):
    assert cheapest_allowed(pods(*sizes), offers, present) == price


def test_one_by_one_no_two_nodes_become_one():
    assert cheapest_allowed(pods(9), [SMALL, LARGE], (1.0, 1.0, 1.0)) == 2.0
    assert cheapest_allowed(pods(9), [SMALL, LARGE], (1.0, 1.0, 1.0), one_by_one=True) == float("inf")
    assert cheapest_allowed(pods(4), [SMALL, LARGE], (2.0, 2.0), one_by_one=True) == 1.0


def test_what_is_allowed_keeps_the_minimum():
    kept = Offer(room=(9, 100, 100), price=2.0, minimum=1)
    assert cheapest_allowed(pods(4), [SMALL, kept], (2.0, 2.0)) == 2.0
    assert cheapest_allowed([], [SMALL, kept], (2.0, 2.0)) == 2.0


@pytest.mark.parametrize("seed", range(20))
def test_no_way_to_deal_pods_out_is_cheaper(seed):
    chance = random.Random(seed)
    wanted = [(chance.randint(1, 5), chance.randint(1, 5), 1) for _ in range(5)]
    offers = [Offer(room=(5, 6, 9), price=1.0), Offer(room=(9, 8, 9), price=1.6)]
    assert cheapest(wanted, offers) == pytest.approx(min(dealt_out(wanted, offers)))


def dealt_out(wanted, offers):
    """The price of every way to put the pods into as many heaps as there are pods."""
    for heaps in itertools.product(range(len(wanted)), repeat=len(wanted)):
        price = 0.0
        for heap in set(heaps):
            asked = [sum(pod[at] for pod, own in zip(wanted, heaps, strict=True) if own == heap) for at in range(3)]
            fitting = [one.price for one in offers if all(a <= b for a, b in zip(asked, one.room, strict=True))]
            price += min(fitting, default=float("inf"))
        yield price
