"""The rules about zonal shifts, on a world made manually, and the shifts that a world plays."""

from dataclasses import replace

import pytest

from leeward.disruption.record import cause_id
from leeward.model.termination import Cause, CauseKind, Status
from leeward.model.zonal_shift import Evacuation, ZoneRecord
from leeward.upgrade.record import LaunchOrder, launch_token
from simulation.aws.recovery import Shifted
from simulation.case import Case
from simulation.features import Feature
from simulation.invariants import Checker
from simulation.rule import Rule
from simulation.zone_convergence import zones_left
from simulation.zone_rules import ZoneRules
from tests.fakes.builders import GROUP, ZONE, a_group
from tests.fakes.clock import START
from tests.simulation.test_disruption_rules import a_world
from tests.simulation.view_stand_in import INSTANCE, World, a_record
from tests.unit.upgrade.test_capacity_ledger import RECORD as OPEN_UPGRADE


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


def test_an_order_of_an_upgrade_from_before_the_shift_may_be_repeated_and_a_later_one_may_not(world):
    rules, early = ZoneRules(), replace(OPEN_UPGRADE, orders={"8": LaunchOrder(zone=ZONE, subnet="subnet-a")})
    world.upgrades = {GROUP: early}
    world.known_shifts = {ZONE}
    assert [*rules.launches(world), *rules.learned(world)] == []
    world.clock.advance(minutes=5)
    late = replace(early, orders={"8": early.orders["8"], "9": early.orders["8"]})
    world.upgrades = {GROUP: late}
    assert list(rules.launches(world)) == []
    world.clock.advance(minutes=2)
    world.upgrades = {}
    world.launches += [(f"{launch_token(late, number)}/1", "i-new") for number in ("8", "9")]
    assert list(rules.launches(world)) == [f"i-new was launched in {ZONE} for {launch_token(late, '9')}"]


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


@pytest.mark.parametrize("before", [True, False])
def test_a_run_that_began_to_request_before_the_shift_requests_all_of_its_terminations(world, before):
    rules, run = ZoneRules(), replace(a_world().disruptions["blue"], requested=True)
    world.disruptions = {"blue": run} if before else {}
    assert list(rules.removals(world)) == []
    world.known_shifts = {ZONE}
    assert list(rules.learned(world)) == []
    world.clock.advance(minutes=5)
    cause = Cause(id=cause_id(run, INSTANCE), kind=CauseKind.DRIFTED, at=world.clock.now())
    world.disruptions, world.records[INSTANCE] = {"blue": run}, a_record(causes=(cause,))
    assert bool(list(rules.removals(world))) is not before


def test_a_cause_from_before_the_first_shift_is_not_reported_when_the_record_is_opened_again(world):
    before = Cause(id=f"unhealthy#{INSTANCE}#0", kind=CauseKind.UNHEALTHY, at=world.clock.now())
    closed = replace(a_record(causes=(before,)), status=Status.CLOSED)
    world.records[INSTANCE], rules = closed, ZoneRules()
    assert [*rules.removals(world), *rules.learned(world)] == []
    world.known_shifts = {ZONE}
    assert list(rules.learned(world)) == []
    world.clock.advance(minutes=5)
    scaled_in = Cause(id="event-1", kind=CauseKind.ASG_TERMINATE, at=world.clock.now())
    world.records[INSTANCE] = a_record(causes=(before, scaled_in))
    assert list(rules.removals(world)) == []


@pytest.mark.parametrize(("seconds", "found"), [(10, []), (20, [GROUP])])
def test_a_shift_that_expires_in_the_run_of_a_function_holds_nothing_any_more(world, rules, seconds, found):
    world.shifted[0].expires = world.now + seconds
    world.switched.append((GROUP, "AZRebalance", False))
    assert list(rules.balances(world)) == found


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


def test_what_is_left_when_every_zone_is_open_is_reported_unless_a_termination_is_open(world):
    evacuation = Evacuation(zone=ZONE, by="me", since=START, suspended=(GROUP,), returned=START)
    world.zone_record = ZoneRecord(cluster="blue", evacuations=(evacuation,))
    assert list(zones_left(world)) == [evacuation.sentence]
    of_zones = [one.rule for one in Checker().at_the_end(world) if evacuation.sentence in one.text]
    assert of_zones == [Rule.ZONES_OPEN]
    world.records[INSTANCE] = a_record(causes=(Cause(id="surplus#1", kind=CauseKind.SURPLUS, at=START),))
    assert list(zones_left(world)) == []


def test_an_evacuation_may_wait_for_the_upgrade_of_its_group_and_for_no_other(world):
    evacuation = Evacuation(zone=ZONE, by="me", since=START, suspended=(GROUP,), returned=START)
    world.zone_record = ZoneRecord(cluster="blue", evacuations=(evacuation,))
    world.upgrades["web-b"] = replace(OPEN_UPGRADE, group="web-b", execution="web-b-1")
    world.upgrading = {"web-b-1"}
    assert list(zones_left(world)) == [evacuation.sentence]
    world.upgrades[GROUP] = replace(OPEN_UPGRADE, group=GROUP, execution=f"{GROUP}-1")
    world.upgrading = {f"{GROUP}-1"}
    assert list(zones_left(world)) == []
