"""New nodes are ordered subnet by subnet, one call for all of one subnet, and whatever dies is asked for again."""

from dataclasses import replace

import pytest

from leeward.upgrade.record import Order
from leeward.upgrade.surge_orders import fulfil
from tests.fakes.builders import GROUP, a_group
from tests.fakes.system import FakeSystem
from tests.unit.upgrade.builders import begun


@pytest.fixture
def system():
    return FakeSystem(groups=[a_group(GROUP)])


def ordered(system, *orders):
    return begun(system, orders={str(number): order for number, order in enumerate(orders, 1)})


def test_all_that_are_ordered_in_a_subnet_come_with_one_call(system):
    done = fulfil(ordered(system, "us-east-1a/subnet-a/3"), system.ports)
    assert [subnet for _, subnet, _ in system.groups.launches] == ["subnet-a"]
    assert (len(done.debts), set(done.places.values()), done.launched) == (3, {"us-east-1a"}, 3)
    assert (dict(done.orders), system.upgrades.read(GROUP)) == ({}, done)


def test_an_order_whose_answer_got_lost_brings_the_same_nodes(system):
    record = ordered(system, "us-east-1a/subnet-a/3")
    system.upgrades.fail("write", RuntimeError("killed"), times=1)
    with pytest.raises(RuntimeError):
        fulfil(record, system.ports)
    done = fulfil(system.upgrades.read(GROUP), system.ports)
    assert (len(system.groups.launches), len(done.debts)) == (1, 3)
    assert system.groups.by_name[GROUP].desired == a_group(GROUP).desired + 3


def test_a_subnet_without_capacity_is_remembered_and_the_others_are_asked(system):
    system.groups.short_of_capacity.add("subnet-a")
    done = fulfil(ordered(system, "us-east-1a/subnet-a/2", "us-east-1b/subnet-b/1"), system.ports)
    assert list(done.short) == ["subnet-a"]
    assert list(done.places.values()) == ["us-east-1b"]


def test_the_maximum_size_makes_room_for_all_that_are_ordered(system):
    system.groups.by_name[GROUP] = replace(a_group(GROUP), desired=1, maximum=2)
    done = fulfil(ordered(system, "us-east-1a/subnet-a/3", "us-east-1b/subnet-b/2"), system.ports)
    assert (system.groups.by_name[GROUP].maximum, done.raised_to, len(done.debts)) == (6, 6, 5)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("us-east-1a/subnet-a/12", Order(zone="us-east-1a", subnet="subnet-a", count=12)),
        ("us-east-1a/subnet-a", Order(zone="us-east-1a", subnet="subnet-a")),
    ],
    ids=["with a count", "as earlier versions wrote it"],
)
def test_an_order_is_read_as_it_was_written(text, order):
    assert Order.read(text) == order
    assert Order.read(str(order)) == order
