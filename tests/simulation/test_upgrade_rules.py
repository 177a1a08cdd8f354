"""Each rule about upgrades finds what breaks it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.model import well_known
from leeward.model.group import GroupInstance
from leeward.model.launch import LaunchTemplateRef
from leeward.upgrade.members import UpgradeTarget
from leeward.upgrade.record import UpgradeRecord
from leeward.upgrade.surge.sizes import Strategy
from simulation.aws.books import Book
from simulation.aws.upgrade_books import UpgradeBooks
from simulation.invariants import Checker, Rule
from tests.fakes.builders import GROUP, ZONE
from tests.fakes.clock import START
from tests.simulation.view_stand_in import INSTANCE, NODE, World

MINE = {Rule.UPGRADE, Rule.TARGET, Rule.RESTORED, Rule.LIFTED}
WANTED = LaunchTemplateRef(id="lt-1", version="2")


def a_world(**record):
    world = World()
    began = datetime.fromtimestamp(world.now, UTC)
    found = UpgradeRecord(
        group=GROUP,
        target=UpgradeTarget(template=WANTED),
        strategy=Strategy.DEFAULT,
        desired=1,
        maximum=10,
        began=began,
        version=1,
        execution="web-1",
        **record,
    )
    world.upgrades, world.maxima = {GROUP: found}, {GROUP: world.groups[GROUP].maximum}
    return world, began


def broken(world, checker=None):
    """Of the rules about upgrades, each once."""
    found = (checker or Checker()).at_the_end(world)
    return sorted({violation.rule for violation in found} & MINE)


def test_a_node_of_another_version_after_the_end_is_found():
    world, began = a_world()
    world.upgrades[GROUP] = replace(world.upgrades[GROUP], ended=began)
    assert broken(world) == []
    old = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="InService", template=replace(WANTED, version="1"))
    world.groups[GROUP] = replace(world.groups[GROUP], instances=(old,))
    assert broken(world) == [Rule.TARGET]


@pytest.mark.parametrize("out", [{"lifecycle": "Standby"}, {"protected": True}])
def test_an_instance_that_was_out_of_service_when_the_upgrade_ended_may_serve_on_its_old_version(out):
    world, began = a_world()
    world.upgrades[GROUP] = replace(world.upgrades[GROUP], ended=began)
    old = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="InService", template=replace(WANTED, version="1"))
    world.groups[GROUP] = replace(world.groups[GROUP], instances=(replace(old, **out),))
    checker = Checker()
    checker.after_event(world)
    world.groups[GROUP] = replace(world.groups[GROUP], instances=(old,))
    assert broken(world, checker) == []


def test_an_instance_that_came_out_of_a_warm_pool_may_serve_on_its_old_version():
    world, began = a_world()
    world.upgrades[GROUP] = replace(world.upgrades[GROUP], ended=began)
    old = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="InService", template=replace(WANTED, version="1"))
    world.groups[GROUP], world.reused = replace(world.groups[GROUP], instances=(old,)), {INSTANCE}
    assert broken(world) == []


def test_an_instance_that_served_when_the_last_upgrade_ended_is_found_whatever_an_earlier_one_left_out():
    world, began = a_world()
    world.upgrades[GROUP] = replace(world.upgrades[GROUP], ended=began)
    old = GroupInstance(id=INSTANCE, zone=ZONE, lifecycle="Standby", template=replace(WANTED, version="1"))
    world.groups[GROUP] = replace(world.groups[GROUP], instances=(old,))
    checker = Checker()
    checker.after_event(world)
    world.groups[GROUP] = replace(world.groups[GROUP], instances=(replace(old, lifecycle="InService"),))
    world.upgrades[GROUP] = replace(world.upgrades[GROUP], ended=began + timedelta(hours=1))
    assert broken(world, checker) == [Rule.TARGET]


def test_what_was_not_returned_is_found():
    world, _ = a_world()
    assert broken(world) == []
    world.groups[GROUP] = replace(world.groups[GROUP], suspended=("AZRebalance",))
    assert broken(world) == [Rule.RESTORED]


def test_a_cordon_without_an_upgrade_is_found():
    world, _ = a_world()
    world.cluster.patch("nodes", NODE, {"metadata": {"annotations": {well_known.CORDONED_FOR: GROUP}}})
    assert broken(world) == []
    world.upgrades = {}
    assert broken(world) == [Rule.LIFTED]


def test_a_node_that_is_kept_from_cluster_autoscaler_without_an_upgrade_is_found():
    world, _ = a_world()
    world.upgrading = {"web-1"}
    world.cluster.patch("nodes", NODE, {"metadata": {"annotations": {well_known.KEPT_FOR: GROUP}}})
    assert broken(world) == []
    world.upgrading = set()
    assert broken(world) == [Rule.LIFTED]


def test_an_upgrade_that_gets_nowhere_is_found():
    world, _ = a_world()
    world.upgrading = {"web-1"}
    checker = Checker()
    checker.after_event(world)
    world.clock.advance(seconds=7200)
    assert broken(world, checker) == [Rule.UPGRADE]


@pytest.mark.parametrize(("scaled", "later", "least"), [(True, True, 0), (True, False, 1), (False, True, 1)])
def test_what_others_scaling_has_forgiven_stays_forgiven_when_a_later_upgrade_comes(scaled, later, least):
    world, began = a_world(launched=1)
    before = replace(world.upgrades[GROUP], others_scaled=began if scaled else None)
    book = Book(least=1, most=1)
    after = replace(before, began=began + timedelta(hours=1)) if later else replace(before, version=2)
    UpgradeBooks({GROUP: book}).wrote(before, after)
    assert (book.least, book.most) == (least, 1)


@pytest.mark.parametrize(
    ("changes", "least"),
    [({}, 0), ({"launched": 0}, 1), ({"ended": START}, 1), ({"ended": START, "error": "PodEvictionFailure"}, 0)],
    ids=["under way", "before its first launch", "ended", "failed"],
)
def test_a_decrement_of_an_owner_pays_for_a_launch_that_the_upgrade_still_makes(changes, least):
    world, _ = a_world(launched=1)
    book = Book()
    UpgradeBooks({GROUP: book}).wrote(None, replace(world.upgrades[GROUP], **changes))
    book.taken_by_owner()
    book.launched()
    assert book.least == least


def test_what_owners_took_pays_for_nothing_after_the_upgrade():
    world, _ = a_world(launched=1)
    book, record = Book(), world.upgrades[GROUP]
    books = UpgradeBooks({GROUP: book})
    books.wrote(None, record)
    book.taken_by_owner()
    books.wrote(record, replace(record, ended=START))
    book.launched()
    assert book.least == 1


def test_what_others_scaling_has_forgiven_stays_forgiven_when_a_rollback_measures_the_sizes_again():
    world, began = a_world(launched=2)
    scaled = replace(world.upgrades[GROUP], others_scaled=began)
    again = replace(scaled, others_scaled=None, launched=6)
    book = Book(least=6, most=6)
    books = UpgradeBooks({GROUP: book})
    books.wrote(scaled, replace(scaled, others_scaled=None))
    assert book.least == 4
    later = replace(again, others_scaled=began)
    books.wrote(again, later)
    books.wrote(later, replace(later, began=began + timedelta(hours=1)))
    assert (book.least, book.most) == (0, 6)
