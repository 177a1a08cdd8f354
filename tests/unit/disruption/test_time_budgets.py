"""Each method of a plan has a share of its time, and what it has found by the end of that is its plan."""

from datetime import timedelta

import pytest

from leeward.disruption import telemetry
from leeward.disruption.command import MethodName
from leeward.disruption.controller import AFTER_SEARCH, SEARCH, PlannerResult, search_budget
from leeward.disruption.plan import plan_disruption, validate
from leeward.disruption.planning_state import PlanningState
from leeward.scheduling.outcome import NO_TIME
from leeward.scheduling.packing import attempt
from leeward.time_budget import SearchTime, TimeBudget
from tests.fakes.running_clock import RunningClock
from tests.fakes.system import FakeSystem
from tests.unit.disruption.fleet import a_fleet, a_policy, rules

EXPIRED = rules(expire_after=timedelta(days=1))


def a_budget_of(looks):
    return TimeBudget.of(RunningClock(), looks)


def expired(count, cpu="300m"):
    fleet = a_fleet(a_policy(disruption=EXPIRED))
    for number in range(count):
        fleet.node(f"n{number:02}", created="2026-04-10T00:00:00Z").pod(f"p{number}", f"n{number:02}", cpu=cpu)
    return fleet


def drifted(count):
    fleet = a_fleet(a_policy(disruption=rules(drift=True)))
    for number in range(count):
        fleet.node(f"n{number:02}", labels={"company.example/old": "yes"}).pod(f"p{number}", f"n{number:02}")
    return fleet


def half_empty(count):
    fleet = a_fleet()
    for number in range(count):
        fleet.node(f"n{number:02}").pod(f"p{number}", f"n{number:02}", cpu="300m")
    return fleet


@pytest.mark.parametrize("looks", [1, 5, 20, 60, 150])
def test_expiration_takes_as_many_nodes_as_its_time_allows_in_the_same_order(looks):
    snapshot = expired(8).snapshot()
    whole = plan_disruption(snapshot, only=MethodName.EXPIRATION)
    part = plan_disruption(snapshot, only=MethodName.EXPIRATION, budget=a_budget_of(looks))
    assert part.commands == whole.commands[: len(part.commands)]
    waiting = [one[MethodName.EXPIRATION].reason for one in part.verdicts.values()]
    assert sum(NO_TIME in why for why in waiting) == 8 - len(part.commands)
    assert (MethodName.EXPIRATION in part.timed_out) == (len(part.commands) < 8)


@pytest.mark.parametrize("looks", [1, 5, 20, 60, 300])
def test_a_consolidation_that_its_time_ends_is_valid_and_says_so(looks):
    snapshot = half_empty(8).snapshot()
    part = plan_disruption(snapshot, only=MethodName.CONSOLIDATION, budget=a_budget_of(looks))
    assert MethodName.CONSOLIDATION in part.timed_out
    assert len(validate(snapshot, part.method, part.commands).commands) == len(part.commands)


def test_with_more_time_a_consolidation_finds_what_it_finds_without_a_limit():
    snapshot = half_empty(4).snapshot()
    whole, ample = plan_disruption(snapshot), plan_disruption(snapshot, budget=a_budget_of(100_000))
    assert (ample.commands, ample.timed_out, whole.timed_out) == (whole.commands, (), ())


def test_single_nodes_do_not_take_the_time_of_sets_and_replacements():
    snapshot = half_empty(30).snapshot()
    part = plan_disruption(snapshot, only=MethodName.CONSOLIDATION, budget=a_budget_of(40))
    (command,) = part.commands
    assert len(command.nodes) > 1
    assert sum(one[MethodName.CONSOLIDATION].reason == NO_TIME for one in part.verdicts.values()) > 0


def test_empty_nodes_need_no_time():
    fleet = half_empty(3).node("empty", annotations={"leeward.dev/empty-since": "2026-05-01T10:00:00Z"})
    plan = plan_disruption(fleet.snapshot(), only=MethodName.EMPTINESS, budget=a_budget_of(0))
    assert [command.nodes for command in plan.commands] == [("empty",)]


def test_nodes_that_cannot_expire_leave_time_for_the_methods_after_them():
    """Forty expired nodes of a group that can launch nothing, and a node of another group that is not needed."""
    only_expire = rules(expire_after=timedelta(days=1), consolidation_policy="Never")
    fleet = a_fleet(a_policy("old", "old", disruption=only_expire), a_policy("web", "web"))
    fleet.group("old", "medium").group("web", "medium")
    for number in range(40):
        fleet.node(f"o{number:02}", group="old", created="2026-04-10T00:00:00Z")
        fleet.pod(f"o{number}", f"o{number:02}", cpu="1900m")
    for name in ("w1", "w2"):
        fleet.node(name, group="web").pod(name, name, cpu="300m")
    plan = plan_disruption(fleet.snapshot(), only=MethodName.CONSOLIDATION, budget=a_budget_of(60))
    assert MethodName.EXPIRATION in plan.timed_out
    assert len(plan.commands) == 1


def a_large_node():
    fleet = a_fleet(a_policy(disruption=EXPIRED)).node("old", type="huge", created="2026-04-10T00:00:00Z")
    fleet.node("new", type="huge", created="2026-05-01T11:00:00Z")
    for number in range(100):
        fleet.pod(f"p{number}", "old", cpu="10m", memory="16Mi")
    return fleet.snapshot()


def test_a_long_try_ends_with_its_time_and_leaves_the_world_as_it_was():
    world = PlanningState(a_large_node()).world
    free = {node.name: world.free(node.name) for node in world.nodes}
    looks = iter([True, True])
    world.in_time = lambda: next(looks, False)
    packing = attempt(world, ["old"], whole=True)
    assert (packing.timed_out, packing.placements, len(packing.unplaced)) == (True, {}, 1)
    assert {node.name: world.free(node.name) for node in world.nodes} == free
    world.in_time = lambda: True
    assert attempt(world, ["old"], whole=True).complete


@pytest.mark.parametrize(("looks", "ended"), [(4, True), (200, False)])
def test_a_method_whose_only_try_is_ended_says_so(looks, ended):
    plan = plan_disruption(a_large_node(), only=MethodName.EXPIRATION, budget=a_budget_of(looks))
    assert (NO_TIME in plan.verdicts["old"][MethodName.EXPIRATION].reason) == ended
    assert (MethodName.EXPIRATION in plan.timed_out) == ended
    assert len(plan.commands) == (0 if ended else 1)


def test_pods_without_a_node_take_a_part_of_the_time_only():
    fleet = half_empty(2)
    for number in range(2_000):
        fleet.pod(f"pending-{number}", cpu="1m", nodeSelector={f"k{number}": "v"})
    clock = RunningClock(step=0.1)
    state = PlanningState(fleet.snapshot(), SearchTime(TimeBudget.of(clock, 8.0)))
    assert state.arrivals == {}
    assert state.time.budget.left >= 5.0


def test_a_command_that_the_time_does_not_let_be_checked_holds_no_longer():
    snapshot = a_large_node()
    plan = plan_disruption(snapshot, only=MethodName.EXPIRATION)
    late = validate(snapshot, plan.method, plan.commands, more=lambda: False, budget=a_budget_of(0))
    assert (len(plan.commands), late.commands) == (1, ())
    still = validate(snapshot, plan.method, plan.commands, more=lambda: False, budget=a_budget_of(1_000))
    assert len(still.commands) == 1


class TestTheFunction:
    def test_the_time_of_a_search_follows_from_that_of_the_function(self):
        system = FakeSystem()
        assert search_budget(system.ports.clock, None).left == SEARCH
        assert search_budget(system.ports.clock, None, 0.5).left == SEARCH / 2
        assert search_budget(system.ports.clock, system.ports.for_seconds(150).budget).left == 150 - AFTER_SEARCH
        assert search_budget(system.ports.clock, system.ports.for_seconds(60).budget).left == 0

    def test_the_log_names_the_methods_and_a_metric_counts_them(self, capsys):
        telemetry.decided(PlannerResult(timed_out=["blue: consolidation", "blue: drift", "green: drift"]))
        written = capsys.readouterr().out
        assert '"timed_out":["blue: consolidation","blue: drift","green: drift"]' in written
        assert '"cluster":"blue","PlansTimedOut":[2.0]' in written
        assert '"cluster":"green","PlansTimedOut":[1.0]' in written
