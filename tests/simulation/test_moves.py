"""Figures of the disturbance: pods moved again, launches, minutes under our taint, and their limits."""

from dataclasses import replace

import pytest

from simulation.invariants import Checker, Rule
from simulation.moves import (
    AGAIN,
    CALM,
    CALM_AGAIN,
    EVICTED,
    LAUNCHES,
    LONGEST,
    MINUTES,
    SPARE,
    TAINTED,
)
from simulation.ordered import Ordered
from simulation.outcome import Outcome
from simulation.summary import summary
from tests.fakes.builders import GROUP
from tests.simulation.view_stand_in import INSTANCE, NODE, World

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}


def a_pod(world, number):
    spec = {"nodeName": NODE, "containers": [{"name": "app", "image": "app"}]}
    metadata = {"name": f"web-{number}", "ownerReferences": [OWNER]}
    world.cluster.create("pods", {"metadata": metadata, "spec": spec}, "default")


def moved(times, *, asked=(), between=10, ordered=()):
    """A controller's only pod is evicted so many times, each time from a node under our taint."""
    world, checker = World(started_manually=set(asked), ordered=list(ordered)), Checker()
    checker.after_event(world)
    world.taint()
    for number in range(times):
        a_pod(world, number)
        (pod,) = (one for one in world.api.pods_on(NODE) if one.name == f"web-{number}")
        checker.after_event(world)
        world.api.evict(pod)
        checker.after_event(world)
        world.clock.advance(seconds=between)
        world.cluster.step(world.now)
        checker.after_event(world)
    return world, checker


def test_a_pod_that_takes_the_place_of_another_and_is_evicted_again_was_moved_twice():
    world, checker = moved(3)
    figures = checker.figures(world)
    assert [figures[name] for name in (EVICTED, AGAIN, CALM, CALM_AGAIN)] == [3, 2, 3, 2]


def test_a_manual_drain_is_no_move_for_nothing_urgent_and_a_pod_that_comes_later_is_another():
    world, checker = moved(3, asked=[INSTANCE])
    assert [checker.figures(world)[name] for name in (AGAIN, CALM, CALM_AGAIN)] == [2, 0, 0]
    world, checker = moved(3, between=300)
    assert checker.figures(world)[AGAIN] == 0


def test_moving_the_same_pods_over_and_over_is_found():
    def limits(times, **given):
        world, checker = moved(times, **given)
        return [one.rule for one in checker.at_the_end(world) if one.rule is Rule.MOVES]

    assert limits(40) == [Rule.MOVES]
    assert limits(40, asked=[INSTANCE]) == limits(10) == []


@pytest.mark.parametrize(("action", "calm"), [("rollback", 0), ("abort", 0), ("pause", 3)])
def test_what_an_operator_takes_back_is_moved_for_the_operator(action, calm):
    order = Ordered(at=0.0, group=GROUP, asked={"group": GROUP, "action": action})
    world, checker = moved(3, ordered=[order])
    assert [checker.figures(world)[name] for name in (AGAIN, CALM)] == [2, calm]


def test_launches_without_need_are_found():
    world = World()
    world.launches = [(f"i-{number}/1", f"i-new{number}") for number in range(SPARE + 1)]
    assert Rule.MOVES in {one.rule for one in Checker().at_the_end(world)}


def test_a_launch_that_others_end_in_its_boot_is_no_launch_without_need_though_ec2_has_forgotten_it():
    world, checker = World(), Checker()
    names = [f"i-new{number}" for number in range(SPARE + 1)]
    world.launches = [(f"{name}/1", name) for name in names]
    world.unjoined.update(names)
    checker.after_event(world)
    world.ended.update(names)
    checker.after_event(world)
    world.unjoined.clear()
    assert Rule.MOVES not in {one.rule for one in checker.at_the_end(world)}


@pytest.mark.parametrize(("orders", "broken"), [((), True), (("pause",), True), (("abort",), False)])
def test_a_launch_that_we_end_in_its_boot_was_needed_where_an_operator_takes_the_upgrade_back(orders, broken):
    world, checker = World(), Checker()
    names = [f"i-new{number}" for number in range(SPARE + 1)]
    group = world.groups[GROUP]
    members = tuple(replace(group.instances[0], id=name) for name in names)
    world.groups[GROUP] = replace(group, instances=(*group.instances, *members))
    world.launches = [(f"{name}/1", name) for name in names]
    world.unjoined.update(names)
    checker.after_event(world)
    world.ordered = [Ordered(at=0.0, group=GROUP, asked={"group": GROUP, "action": action}) for action in orders]
    world.ended.update(names)
    world.asked_by_us = set(names)
    checker.after_event(world)
    assert (Rule.MOVES in {one.rule for one in checker.at_the_end(world)}) is broken


def test_minutes_count_from_the_taint_to_its_end():
    world, checker = World(), Checker()
    checker.after_event(world)
    node = world.taint()
    checker.after_event(world)
    world.clock.advance(seconds=600)
    world.api.untaint(world.api.node(NODE), node.taints[0])
    checker.after_event(world)
    assert [checker.figures(world)[name] for name in (TAINTED, MINUTES, LONGEST)] == [1, 10, 10]


def test_the_summary_says_them():
    figures = {EVICTED: 10, AGAIN: 2, CALM: 4, CALM_AGAIN: 1, LAUNCHES: 3, TAINTED: 5, MINUTES: 50, LONGEST: 20}
    lines = list(summary([_outcome(figures), _outcome(figures)], 60))
    assert "pods evicted: 20, of these moved within the hour: 4 (20.0 %)" in lines
    assert "  for nothing urgent: 8, of these moved so before: 2 (25.0 %)" in lines
    assert "launches: 6 for 10 nodes that were under our taint" in lines
    assert "minutes under our taint: 10.0 on average, 20 at most" in lines


def _outcome(figures):
    none = dict.fromkeys(("events", "checks", "executions", "terminated", "dead_letters", "redriven"), 0)
    empty = {"faults": {}, "arrivals": {}, "violations": (), "unexpected": (), "story": ()}
    return Outcome(seed=1, days=1, hooks_timed_out=0, digest="", figures=figures, **none, **empty)
