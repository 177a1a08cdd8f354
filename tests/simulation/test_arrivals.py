"""What befalls a fleet: every kind is played and ends in a quiet world; mass events; causes that meet."""

import json
from dataclasses import replace
from itertools import product

import pytest

from leeward.model.termination import Outcome
from simulation.aws.compute import IN_SERVICE
from simulation.fault_rates import Faults
from simulation.fleets import ArrivalKind
from simulation.scene import is_moving, subject
from simulation.world import World
from tests.drawing import drawn
from tests.simulation.fleet_stand_in import SMALL, ZONES, Arrival, Fleet, GroupPlan, budget, deployment

FIRST = "i-00000000000000001"
HOUR = 3600.0
WIDE = Fleet(
    groups=(
        GroupPlan(name="spot", size=6, maximum=9),
        GroupPlan(name="other", size=3, instance_type="c5.xlarge"),
        GroupPlan(name="steady", spot=False, size=3),
        GroupPlan(name="rebalanced", size=3, capacity_rebalance=True),
    ),
    workloads=(deployment("web", 8), budget("web"), deployment("api", 10), budget("api", 3)),
)


def a_world(*arrivals, fleet=WIDE):
    world = World(1, fleet, Faults.none(), arrivals)
    world.events = []
    emit = world.bus.emit

    def noted(event):
        world.events.append(event)
        emit(event)

    world.bus.emit = noted
    return world


def an_arrival(kind, pick=0, at=60):
    return Arrival(at_seconds=at, kind=kind, pick=pick)


def warned(world):
    return [e["detail"]["instance-id"] for e in world.events if "Interruption" in e["detail-type"]]


@pytest.mark.parametrize(("kind", "pick"), drawn(product(ArrivalKind, (0, 2**31 - 1)), 4))
def test_every_kind_is_played_and_ends_in_a_quiet_world(kind, pick):
    world = a_world(an_arrival(kind, pick))
    outcome = world.run(0.5)
    assert (outcome.violations, outcome.unexpected, outcome.arrivals) == ((), (), {kind: 1})
    assert not world.open_executions
    assert world.queue.depth == 0


def test_a_storm_warns_all_spot_instances_of_one_type_in_one_zone_within_seconds():
    world = a_world(an_arrival("spot_storm"))
    pool = {m.id for m in world_members(world) if m.spot and m.type == "m5.large" and m.zone == ZONES[0]}
    world.run(0.2, converge=HOUR)
    assert set(warned(world)) == pool
    assert len(pool) == 3
    times = {event["time"] for event in world.events if "Interruption" in event["detail-type"]}
    assert len(times) <= 7
    assert {world.records[name].outcome for name in pool} == {Outcome.TERMINATED}


def world_members(world):
    """Those that the fleet begins with: ids and zones come in the order of the plan."""
    twin = World(1, WIDE, Faults.none(), ())
    twin.fleet.populate()
    return list(twin.fleet.instances.values())


def test_an_outage_ends_every_instance_of_the_zone_and_none_of_another():
    world = a_world(an_arrival("zone_outage"))
    here = {m.id for m in world_members(world) if m.zone == ZONES[0]}
    world.run(0.2, converge=HOUR)
    gone = {m.id for m in world_members(world)} - {m.id for m in world.fleet.instances.values() if not m.gone}
    assert gone == here
    assert all(len(group.instances) == group.desired for group in world.groups.values())


def test_a_rebalance_recommendation_comes_true_for_the_same_instance_minutes_later():
    fleet = replace(WIDE, groups=(GroupPlan(spot=True, size=4, maximum=4),), workloads=())
    world = a_world(an_arrival("rebalance_then_warning"), fleet=fleet)
    world.system.bus.emit = lambda event: None  # the product hears nothing: the instance is still there
    world.run(0.5, converge=600)
    assert [line for line in world.story if FIRST in line and "event EC2 Spot Instance Interruption" in line]
    assert [line for line in world.story if FIRST in line and "event EC2 Instance Rebalance" in line]


def test_maintenance_is_announced_twice_as_one_event_with_another_date(monkeypatch):
    monkeypatch.setattr("simulation.interruptions.ANNOUNCED_AGAIN", (10.0, 10.0))
    world = a_world(an_arrival("maintenance_moved"))
    world.run(0.5, converge=HOUR)
    health = [event["detail"] for event in world.events if event["source"] == "aws.health"]
    assert len(health) == 2
    assert len({detail["eventArn"] for detail in health}) == 1
    assert len({detail["startTime"] for detail in health}) == 2
    assert json.dumps(health[0]["affectedEntities"]) == json.dumps(health[1]["affectedEntities"])


def test_a_warning_a_scale_in_and_a_manual_drain_meet_on_one_instance():
    world = a_world(an_arrival("collision", pick=2**3))
    outcome = world.run(0.2, converge=HOUR)
    story = "\n".join(outcome.story)
    one = next(line.split()[4] for line in outcome.story if "several want" in line)
    assert warned(world) == [one]
    assert f"a scaling policy terminates {one}" in story
    assert f"an operator drains node-{one}" in story
    assert world.records[one].outcome is Outcome.TERMINATED
    assert outcome.violations == ()


def test_a_third_of_the_picks_takes_an_instance_that_moves_already():
    world = a_world(an_arrival("operator_cordon"), fleet=SMALL)
    world.fleet.populate()
    leaving = world.fleet.instances["i-00000000000000002"]
    assert not is_moving(world, leaving)
    assert subject(world, 0).id == FIRST
    world.fleet.unhealthy(leaving)
    assert is_moving(world, leaving)
    assert [subject(world, pick).id for pick in (0, 1, 3 << 8)] == [leaving.id] * 3
    assert subject(world, 1 << 8).lifecycle == IN_SERVICE


def test_nothing_befalls_a_fleet_without_instances():
    world = a_world(fleet=SMALL)
    assert subject(world, 0) is None
    world.fleet.populate()
    assert subject(world, 0, spot=True) is not None


def test_a_group_whose_rebalancing_replacement_dies_first_comes_back_to_its_size():
    world = a_world(fleet=replace(SMALL, groups=(GroupPlan(capacity_rebalance=True),)))
    world.fleet.populate()
    group = world.fleet.groups["spot"]
    world.fleet.notices.rebalance_recommendation(world.fleet.instances[FIRST])
    world.fleet.end_instance(world.fleet.instances["i-00000000000000004"], direct=True)
    world.timeline.run_until(world.now + 600)
    assert group.replacing == {}
    assert len(group.staying) == group.desired == 3
