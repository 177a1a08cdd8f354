"""The rules about zonal shifts, on a world made manually, and the shifts that a world plays."""

import pytest

from leeward.model.termination import Cause, CauseKind
from simulation.aws.recovery import Shifted
from simulation.case import Case
from simulation.features import Feature
from simulation.invariants import Checker
from simulation.rule import Rule
from simulation.zone_rules import ZoneRules
from tests.fakes.builders import GROUP, ZONE, a_group
from tests.simulation.view_stand_in import INSTANCE, World, a_record


@pytest.fixture
def world():
    """A shift that began just now and is known at once."""
    world = World(only_kubernetes_fails=True)
    world.groups = {GROUP: a_group(GROUP, INSTANCE, "i-new")}
    world.shifted.append(Shifted(zone=ZONE, began=world.now))
    return world


@pytest.fixture
def rules(world):
    rules = ZoneRules()
    list(rules.removals(world))
    assert list(rules.learned(world)) == []
    world.known_shifts = {ZONE}
    assert list(rules.learned(world)) == []
    world.clock.advance(minutes=5)
    return rules


def test_a_shift_that_is_not_known_after_a_minute_and_a_run_of_the_reconciler_is_reported_once(world):
    rules = ZoneRules()
    world.clock.advance(seconds=70)
    assert list(rules.learned(world)) == []
    world.clock.advance(seconds=10)
    assert list(rules.learned(world)) == [f"{ZONE}, shifted 80 s ago"]
    assert list(rules.learned(world)) == []


def test_a_launch_into_the_zone_is_reported_and_one_into_another_is_not(world, rules):
    world.launches.append((f"leeward-{INSTANCE}-a", "i-new"))
    assert list(rules.launches(world)) == [f"i-new was launched in {ZONE} for {INSTANCE}"]
    world.shifted[0].zone = "us-east-1b"
    world.launches.append((f"leeward-{INSTANCE}-b", "i-new"))
    assert list(rules.launches(world)) == []


def test_a_launch_after_the_shift_is_not_reported(world, rules):
    world.shifted[0].ended = world.now
    world.launches.append((f"leeward-{INSTANCE}-a", "i-new"))
    assert list(rules.launches(world)) == []


def test_a_resumed_balancing_is_reported_and_a_suspended_one_is_not(world, rules):
    world.switched.append((GROUP, "AZRebalance", True))
    assert list(rules.balances(world)) == []
    world.switched.append((GROUP, "AZRebalance", False))
    assert list(rules.balances(world)) == [GROUP]


@pytest.mark.parametrize(("cause", "reported"), [("upgrade#web#1", True), ("event-1#i-a", False)])
def test_a_voluntary_termination_in_the_zone_is_reported_and_a_warning_is_not(world, rules, cause, reported):
    kind = CauseKind.UPGRADE if reported else CauseKind.SPOT_INTERRUPTION
    world.records[INSTANCE] = a_record(causes=(Cause(id=cause, kind=kind, at=world.clock.now()),))
    assert bool(list(rules.removals(world))) is reported


def test_a_world_with_the_feature_shifts_zones_and_cordons_their_nodes():
    case = Case(seed=3, hours=1.0, per_hour=10, features=(Feature.ZONAL_SHIFT.value, Feature.NO_FAULTS.value))
    world = case.world()
    outcome = world.run(case.hours)
    assert len(world.shifted) >= 1
    assert all(shift.ended is not None for shift in world.shifted)
    assert any("ARC shifts" in line for line in outcome.story)
    assert outcome.violations == ()


def reported(checker, world):
    return [violation.rule for violation in checker.after_event(world)]


def test_the_checker_asks_each_rule_while_a_shift_lasts(world):
    checker = Checker()
    assert reported(checker, world) == []
    world.known_shifts = {ZONE}
    assert reported(checker, world) == []
    world.clock.advance(minutes=5)
    world.launches.append(("leeward-upgrade-1", "i-new"))
    assert reported(checker, world) == [Rule.SHIFT_LAUNCH]
    world.switched.append((GROUP, "AZRebalance", False))
    assert reported(checker, world) == [Rule.SHIFT_BALANCE]
    cause = Cause(id="disruption#blue#1#i-a", kind=CauseKind.DRIFTED, at=world.clock.now())
    world.records[INSTANCE] = a_record(causes=(cause,))
    assert reported(checker, world) == [Rule.SHIFT_REMOVAL]


def test_the_checker_reports_a_shift_that_stays_unknown(world):
    checker = Checker()
    assert reported(checker, world) == []
    world.clock.advance(minutes=2)
    assert reported(checker, world) == [Rule.SHIFT_KNOWN]
