"""What the plan says of the sizes is what the running upgrade keeps to, and others' sizes stay theirs (U5, U15)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.policy.document import Window
from leeward.upgrade.observation import fresh_record, observe
from leeward.upgrade.preflight.plan import plan_upgrade
from leeward.upgrade.record import UpgradeRequest
from leeward.upgrade.targets import expected
from local.cluster.objects import is_ready
from simulation.node_instances import instance_behind
from simulation.owners import set_desired
from tests.simulation.upgrade_stand_in import BEGIN, GROUP, Upgraded, a_fleet

LATER = Window(schedule="30 0 * * *", duration=timedelta(hours=20))


def planned(world):
    """The plan for version 2, as it is before the start."""
    ports, group = world.world.system.ports, world.world.fleet.groups[GROUP].described()
    policy = world.world.policies.policies[0]
    record = fresh_record(group, "blue", policy, UpgradeRequest(template_version="2"), ports.clock)
    return plan_upgrade(
        observe(replace(record, target=expected(record, group, ports.templates)), ports).preflight
    ).sizes


@pytest.mark.parametrize("strategy", ["DEFAULT", "MINIMAL", "INCREMENTAL"])
@pytest.mark.parametrize("parallel", [1, 5])
def test_neither_size_is_ever_above_what_the_plan_says(strategy, parallel):
    world = Upgraded(a_fleet(size=12, maximum=12, strategy=strategy, max_unavailable=parallel))
    plans, seen, look_on = [], [], world.world.seen

    def note():
        look_on()
        seen.append((world.group.desired, world.group.maximum))

    world.world.seen = note
    world.at(BEGIN - 1, lambda: plans.append(planned(world))).start(launchTemplateVersion="2").run(2)
    (plan,) = plans
    assert (world.ended(), world.at_rest(12)) == ("Upgraded", True)
    assert max(desired for desired, _ in seen) <= plan.desired.during
    assert max(maximum for _, maximum in seen) == plan.maximum.during


def test_with_many_nodes_going_side_by_side_more_come_ahead_than_the_surge_and_the_plan_says_so():
    world, plans = Upgraded(a_fleet(size=20, maximum=20, max_unavailable=2)), []
    world.at(BEGIN, lambda: plans.append(planned(world))).run(0.2)
    assert [(plan.desired.during, plan.maximum.during) for plan in plans] == [(32, 32)], "surge 6, 3 x 2 on their way"


def test_a_maximum_that_others_raise_meanwhile_is_left_to_them():
    world = Upgraded().start(launchTemplateVersion="2")

    def more():
        group = world.world.fleet.groups[GROUP]
        group.plan, group.maximum = replace(group.plan, maximum=40), 40

    world.at(BEGIN + 100, more).run()
    assert (world.ended(), world.group.maximum) == ("Upgraded", 40)
    assert not world.world.system.maxima.read(GROUP).active


@pytest.mark.parametrize(("by", "kept"), [(1, 7), (-1, 5)])
def test_a_size_that_others_change_before_the_first_launch_is_the_one_to_keep(by, kept):
    """Without launches ahead the gate would wait for new nodes that never come."""
    world = Upgraded(a_fleet(maximum=14, windows=(LATER,))).start(launchTemplateVersion="2")
    group = world.world.fleet.groups[GROUP]
    world.at(BEGIN + 60, lambda: set_desired(world.world, group, group.desired + by, "an operator")).run(2)
    assert (world.ended(), world.at_rest(kept)) == ("Upgraded", True)


def test_who_scales_up_while_the_gate_waits_for_a_second_zone_keeps_the_larger_size():
    world = Upgraded(a_fleet(maximum=30, max_surge=3)).start(launchTemplateVersion="2")
    group, injector = world.world.fleet.groups[GROUP], world.world.injector
    injector.no_capacity = lambda zone: zone != "us-east-1a" and world.world.timeline.now() < BEGIN + 60
    world.at(BEGIN + 15, lambda: set_desired(world.world, group, group.desired + 1, "an operator")).run(2)
    assert (world.ended(), world.versions, world.cordoned) == ("Upgraded", ["2"], [])
    assert world.group.desired == 6 + 1 + 2, "the launches that were in the size stay beside the owner's"


@pytest.mark.parametrize("strategy", ["DEFAULT", "INCREMENTAL"])
@pytest.mark.parametrize("most", [1, 2])
def test_a_surge_smaller_than_the_zones_serves_as_many_of_them_at_a_time(most, strategy):
    """Each zone keeps a node that takes pods until its own new node is Ready."""
    world, closed = Upgraded(a_fleet(max_surge=most, strategy=strategy)), set()

    def look():
        zones = {member.id: member.zone for member in world.group.instances}
        nodes = [node for node in world.world.cluster.store.each("nodes") if instance_behind(node) in zones]
        taking = [node for node in nodes if is_ready(node) and not node["spec"].get("unschedulable")]
        closed.update({*zones.values()} - {zones[instance_behind(node)] for node in taking})

    world.watch(look).at(BEGIN, closed.clear).start(launchTemplateVersion="2").run(2)
    assert (world.ended(), world.at_rest(), closed) == ("Upgraded", True, set())
    assert world.record.launched == 6
