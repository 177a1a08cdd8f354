"""People who meddle: kubectl's semantics, the group's answers, and what the product makes of it."""

import pytest

from leeward.model.termination import CauseKind, Outcome, Status
from local.cluster.objects import node_of
from simulation.aws.compute import IN_SERVICE
from simulation.fault_rates import Faults
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Arrival, Fleet, GroupPlan, budget, deployment

FIRST = "i-00000000000000001"
NODE = f"node-{FIRST}"
FORCE, ENDS, SHRINKS = 1 << 3, 1 << 4, 1 << 5
DOWN, UP = 0, 1 << 3
PICKS = 1 << 8  # not one of those that move
HOUR = 3600.0
THREE = GroupPlan(spot=False)
FOUR = GroupPlan(size=4, maximum=6, spot=False)


def a_world(*arrivals, workloads=SMALL.workloads, groups=(THREE,)):
    return World(1, Fleet(groups=groups, workloads=workloads), Faults.none(), arrivals)


def an_arrival(kind, pick=0, at=60):
    return Arrival(at_seconds=at, kind=kind, pick=pick)


def run(world, seconds=HOUR):
    outcome = world.run(0.5, converge=seconds)
    assert outcome.violations == ()
    assert outcome.unexpected == ()
    return "\n".join(outcome.story)


def node(world, name=NODE):
    return world.cluster.store.find("nodes", name)


def bare_pod():
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": "alone", "namespace": "default"},
        "spec": {"containers": [container]},
    }


def test_a_manual_drain_empties_the_node_and_the_cordon_comes_off_later():
    world = a_world(an_arrival("operator_drain"))
    pods, seen = [], world.seen

    def look():
        there = node(world)
        if there["spec"].get("unschedulable"):
            pods.append(len(world.cluster.store.pods_on(NODE)))
        seen()

    world.seen = look
    story = run(world)
    assert f"an operator drains {NODE}" in story
    assert f"kubectl drain has emptied {NODE}" in story
    assert pods[0] > 0
    assert pods[-1] == 0
    assert not node(world)["spec"].get("unschedulable")
    assert world.cluster.history.violations() == []


def test_a_manual_drain_without_force_leaves_a_node_with_a_bare_pod_cordoned_and_full():
    world = a_world(an_arrival("operator_drain", pick=0), workloads=(bare_pod(),), groups=(GroupPlan(size=1),))
    story = run(world)
    assert f"kubectl drain refuses {NODE}: a pod has no controller" in story
    assert f"an operator uncordons {NODE}" in story
    assert node_of(world.cluster.get("pods", "alone", "default")) == NODE


def test_a_manual_drain_with_force_takes_a_bare_pod_along():
    world = a_world(an_arrival("operator_drain", pick=FORCE), workloads=(bare_pod(),), groups=(GroupPlan(size=1),))
    assert f"kubectl drain has emptied {NODE}" in run(world)
    assert world.cluster.store.find("pods", "alone", "default") is None


def test_a_manual_drain_gives_up_where_two_budgets_select_a_pod():
    twice = (deployment(replicas=6), budget(), {**budget(), "metadata": {"name": "second", "namespace": "default"}})
    story = run(a_world(an_arrival("operator_drain"), workloads=twice))
    assert f"kubectl drain gives up on {NODE}" in story
    assert "has emptied" not in story


def test_a_manual_drain_waits_for_a_budget_as_long_as_its_patience():
    story = run(a_world(an_arrival("operator_drain"), workloads=(deployment(replicas=6), budget(unavailable=0))))
    drained, gave_up = (next(line for line in story.splitlines() if word in line) for word in ("drains", "gives up"))
    assert (drained[:11], gave_up[:11]) == ("02 00:04:00", "02 00:14:00")


def test_a_drained_node_may_be_ended_by_its_operator_and_the_group_is_smaller():
    world = a_world(an_arrival("operator_drain", pick=ENDS | SHRINKS))
    story = run(world)
    assert f"an operator terminates {FIRST} with decrement" in story
    assert world.groups["spot"].desired == len(world.groups["spot"].instances) == 2
    assert world.records[FIRST].outcome is Outcome.TERMINATED


def test_of_a_group_made_smaller_the_group_chooses_who_goes_and_says_why():
    world = a_world(an_arrival("operator_resize", pick=DOWN), groups=(FOUR,))
    story = run(world)
    assert "an operator changes the desired capacity of spot from 4 to 3" in story
    assert len(world.groups["spot"].instances) == 3
    (record,) = world.records.values()
    assert record.causes[0].kind is CauseKind.ASG_TERMINATE
    (gone,) = world.fleet.groups["spot"].history.since(record.times["claimed"].replace(hour=0, minute=0))
    assert "changing the desired capacity from 4 to 3" in gone.cause


def test_a_group_is_not_made_larger_than_it_may_be():
    world = a_world(*(an_arrival("operator_resize", pick=UP | 2 << 4, at=60 + n) for n in range(3)), groups=(FOUR,))
    run(world)
    assert world.groups["spot"].desired == len(world.groups["spot"].instances) == 6


def test_a_detached_instance_belongs_to_no_group_and_its_group_launches_another():
    world = a_world(an_arrival("operator_detach"))
    world.run(0.25, converge=600)
    member = world.fleet.instances[FIRST]
    assert (member.state, member.lifecycle) == ("running", None)
    assert "aws:autoscaling:groupName" not in member.tags
    assert FIRST not in world.fleet.groups["spot"].members
    serving = [m for m in world.fleet.groups["spot"].members.values() if m.lifecycle == IN_SERVICE]
    assert len(serving) == world.groups["spot"].desired == 3
    assert FIRST not in world.records


def test_a_detached_instance_ends_when_its_owner_has_seen_enough():
    world = a_world(an_arrival("operator_detach", pick=3 << 3))
    run(world, seconds=2 * HOUR)
    assert FIRST not in world.fleet.instances or world.fleet.instances[FIRST].gone
    assert world.groups["spot"].desired == 2


def test_an_execution_started_manually_under_any_name_ends_the_node():
    for pick in (PICKS | 3, PICKS | 1):  # a name of its own; the name that the product would take
        world = a_world(an_arrival("operator_start_execution", pick=pick))
        run(world)
        (record,) = world.records.values()
        assert (record.causes[0].kind, record.status) == (CauseKind.MANUAL, Status.CLOSED)
        assert record.outcome is Outcome.TERMINATED
        assert len(world.groups["spot"].instances) == 3


@pytest.mark.parametrize("flags", [False, True])
def test_an_execution_started_manually_for_an_instance_that_does_not_exist_fails_and_changes_nothing(flags):
    world = a_world(an_arrival("operator_start_execution", pick=0))
    world.flags = flags
    story = run(world)
    assert "starts execution manual-0 for i-0123456789abcdef0" in story
    assert "execution manual-0: FAILED" in story
    assert world.records == {}
    assert len(world.groups["spot"].instances) == 3


def test_the_kubernetes_api_has_to_answer_before_an_operator_evicts():
    world = a_world(an_arrival("operator_drain"))
    world.injector.api_down_until = world.now + 180 + 60 + 120
    story = run(world)
    emptied = next(line for line in story.splitlines() if "has emptied" in line)
    assert emptied[:11] > "02 00:06:00"
