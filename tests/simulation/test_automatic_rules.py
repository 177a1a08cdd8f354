"""The rule about upgrades that a policy starts finds those outside of its window, too early and repeated."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from leeward.policy.document import UpdatePolicy, Window
from leeward.upgrade.record import UpgradeRequest
from simulation.automatic_rules import is_open
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature
from simulation.invariants import Checker, Rule
from simulation.policy_features import OPEN_EVERY, OPEN_FOR
from tests.fakes.builders import GROUP
from tests.simulation.test_upgrade_rules import a_world

IMAGE, NEXT = "ami-1", "ami-2"
WINDOW = Window(schedule=f"*/{OPEN_EVERY} * * * *", duration=timedelta(minutes=OPEN_FOR))


def a_start(auto=timedelta(), windows=(), minute=10):
    """A world in which the policy has just started an upgrade, so many minutes after the hour."""
    world, _ = a_world(request=UpgradeRequest(automatic=IMAGE))
    update = UpdatePolicy(auto=auto, windows=windows)
    named = replace(world.policies.policies[0], update=update)
    world.policies = replace(world.policies, policies=(named,))
    world.clock.advance(seconds=(minute - datetime.fromtimestamp(world.now, UTC).minute) % 60 * 60)
    world.launched_images = {GROUP: IMAGE}
    return world


def broken(world, checker=None):
    return [violation.text for violation in found_in(world, checker) if violation.rule is Rule.AUTOMATIC]


def found_in(world, checker=None):
    return (checker or Checker()).after_event(world)


@pytest.mark.parametrize(("minute", "starts"), [(19, True), (24, True), (26, False), (39, False), (41, True)])
def test_a_start_outside_of_the_window_is_found(minute, starts):
    assert (broken(a_start(windows=(WINDOW,), minute=minute)) == []) is starts
    assert broken(a_start(minute=minute)) == []


def test_a_start_that_no_policy_asks_for_is_found():
    assert [one.rule for one in found_in(a_start(auto=None)) if one.rule is Rule.AUTOMATIC] == [Rule.AUTOMATIC]


def test_a_start_before_the_wait_is_over_is_found():
    world, checker = a_start(auto=timedelta(minutes=5)), Checker()
    (found,) = broken(world, checker)
    assert "starts after 0 s, its policy asks for 0:05:00" in found
    assert broken(world, checker) == []  # it is checked once
    later, checker = a_start(auto=timedelta(minutes=5)), Checker()
    started, later.upgrades = later.upgrades, {}
    assert broken(later, checker) == []
    later.clock.advance(seconds=300)
    later.upgrades = started
    assert broken(later, checker) == []


def test_a_second_start_for_the_same_image_is_found():
    world, checker = a_start(), Checker()
    assert broken(world, checker) == []
    again = replace(world.upgrades[GROUP], began=world.upgrades[GROUP].began + timedelta(hours=1))
    world.upgrades = {GROUP: replace(again, request=UpgradeRequest(automatic=NEXT))}
    assert broken(world, checker) == []
    world.upgrades = {GROUP: again}
    assert broken(world, checker) == [f"{GROUP}: the upgrade to {IMAGE} is started by its policy again"]


def test_the_windows_of_the_feature_are_read_as_cron_reads_them():
    hour = datetime(2026, 3, 2, 5, tzinfo=UTC).timestamp()
    assert [minute for minute in range(60) if is_open(hour + 60 * minute)] == [*range(20), *range(40, 60)]


def test_in_some_worlds_policies_start_upgrades_and_no_rule_is_broken():
    automatic = 0
    for seed in (1, 3, 7):
        case = Case(seed=seed, hours=2, per_hour=5, nodes=9, upgrades=0.5, disruption=True, faults=Faults.none())
        features = (Feature.AUTOMATIC.value, Feature.NO_FAULTS.value)
        world = replace(case, features=features).world()
        outcome = world.run(2, 1800)
        assert (outcome.violations, outcome.unexpected) == ((), ())
        automatic += sum(bool(record.request.automatic) for record in world.system.upgrades.records.values())
    assert automatic >= 2
