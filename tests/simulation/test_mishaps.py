"""Mishaps beside the arrivals: what each does to the world, and what the product makes of it."""

from dataclasses import replace
from random import Random

import pytest

from leeward.errors import ClusterGoneError, ClusterUnreachableError, InvalidInputError, ObjectGoneError, ThrottledError
from leeward.model import well_known
from leeward.model.group import TERMINATING, LifecycleHook
from leeward.model.node import Node
from simulation.asked import Asked, AskedOf, Kind
from simulation.aws.compute import IN_SERVICE, PENDING
from simulation.aws.deleted_groups import delete_group
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.features import Feature, drawn
from simulation.long_pods import GREATEST, HOUR, with_long_pods
from simulation.mishaps.access import DeletedCluster, RefusedTokens
from simulation.mishaps.boot_deaths import BootDeaths
from simulation.mishaps.deletions import DeletedGroups, DeletedTemplates
from simulation.mishaps.lost_policies import LostPolicies
from simulation.mishaps.owners import InstanceRefreshes, LimitsChange, Replicas
from simulation.mishaps.playbill import MISHAPS
from simulation.mishaps.pods import LateBindings, OldCaches
from simulation.mishaps.reversals import CanceledMaintenance, LiftedTaints
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, Fleet, GroupPlan, deployment

BEFORE, LATER = GroupPlan(name="app"), GroupPlan(name="batch", size=2)
NEVER_JOINS = (1e6, 2e6)


class Dice(Random):
    """Dice whose floats are all the same, so that a chance is always taken."""

    def random(self):
        return 0.0


class Longest(Random):
    """Dice whose spans are all the longest."""

    def uniform(self, _, most):
        return most


def a_world(*groups, workloads=SMALL.workloads, faults=None):
    world = World(1, Fleet(groups=groups or (BEFORE,), workloads=workloads), faults or Faults.none(), ())
    world._populate()
    world.timeline.afterwards = world._after
    world.injector.active = faults is not None
    return world


def advance(world, seconds):
    world.timeline.run_until(world.timeline.now() + seconds)


def a_boot(world, name="app"):
    group = world.fleet.groups[name]
    group.joins = NEVER_JOINS
    world.fleet.resize(group, group.desired + 1)
    advance(world, 6)
    (member,) = [one for one in group.members.values() if one.lifecycle == PENDING]
    return group, member


@pytest.mark.parametrize("way", ["_moves", "_stays"])
def test_an_instance_that_fails_its_health_check_in_its_boot_is_replaced_in_the_zone_that_its_group_chooses(way):
    world = a_world()
    group, member = a_boot(world)
    getattr(BootDeaths(world, Dice(1)), way)(member)
    advance(world, 8)
    (again,) = [one for one in group.members.values() if one.lifecycle == PENDING]
    assert (again.zone == member.zone) is (way == "_stays")
    assert group.desired == 4


@pytest.mark.parametrize(("way", "desired"), [("_decrement", 3), ("_terminate", 4), ("_taken", 4)])
def test_an_instance_that_is_ended_in_its_boot_leaves_the_group_as_large_as_its_end_says(way, desired):
    world = a_world(GroupPlan(name="app", spot=False))
    group, member = a_boot(world)
    getattr(BootDeaths(world, Dice(1)), way)(member)
    advance(world, 60)
    assert (member.gone, group.desired) == (True, desired)
    assert len(group.staying) == desired


def test_boots_end_now_and_then_and_never_for_a_node_that_has_joined():
    world = a_world()
    deaths = BootDeaths(world, Dice(1))
    deaths.play()
    assert all(member.lifecycle == IN_SERVICE for member in world.fleet.instances.values())
    _, member = a_boot(world)
    deaths.play()
    advance(world, 60)
    assert member.leaving


def test_policies_are_removed_and_narrowed_and_one_of_them_stays():
    world = a_world(BEFORE, LATER)
    (policy,) = world.policies.policies
    lost = LostPolicies(world, Dice(1))
    lost.play()
    assert world.policies.policies == (policy,)
    other = replace(policy, name="other", selector=replace(policy.selector, groups=("app", "batch")))
    world.rewrite(replace(world.policies, policies=(other, policy)))
    lost._random = Dice(2)
    lost.play()
    assert len(world.policies.policies) == 1 or world.policies.policies[0].selector.groups in {("app",), ("batch",)}


def test_a_deleted_group_is_unknown_to_the_api_and_its_instances_end_without_their_hooks():
    world = a_world(BEFORE, LATER)
    group = world.fleet.groups["app"]
    hook = LifecycleHook(name="ours", group="app", transition=TERMINATING, heartbeat_timeout=600)
    world.system.groups.put_hook(hook, default_result=hook.default)
    member = next(iter(group.members.values()))
    world.fleet.unhealthy(member)
    assert world.fleet.waiting
    delete_group(world.fleet, group)
    advance(world, 120)
    assert not world.fleet.waiting
    assert {one.state for one in world.fleet.instances.values() if one.group == "app"} == {"terminated"}
    assert world.system.groups.describe(["app", "batch"]).keys() == {"batch"}
    assert [one.name for one in world.system.groups.of_clusters(["blue"])] == ["batch"]
    with pytest.raises(InvalidInputError, match="AutoScalingGroup name not found"):
        world.system.groups.put_hook(hook, default_result=hook.default)
    with pytest.raises(ObjectGoneError):
        world.system.changes.suspend("app", "AZRebalance")


def test_only_a_small_group_is_deleted_and_one_for_each_cluster():
    world = a_world(GroupPlan(name="app", size=3), LATER, GroupPlan(name="more", size=2))
    deleted = DeletedGroups(world, Random(1))
    for _ in range(3):
        deleted.play()
    assert sum(group.deleted for group in world.fleet.groups.values()) == 1


def test_a_group_launches_nothing_from_a_deleted_template_until_its_owner_has_mended_it():
    world = a_world()
    group = world.fleet.groups["app"]
    DeletedTemplates(world, Random(1)).play()
    assert group.template.lacks(group.version)
    with pytest.raises(ObjectGoneError):
        world.system.templates.numbered(group.template.ref("1"))
    assert world.system.groups.launch(group="app", subnet="subnet-us-east-1a", token="x").refused
    world.fleet.resize(group, 4)
    advance(world, 190)
    assert len(group.members) == 3
    advance(world, 1400)
    assert (len(group.members), group.template.lacks(group.version)) == (4, False)


def test_a_pod_is_bound_in_the_moment_before_the_taint_and_not_to_a_tainted_node():
    world = a_world()
    LateBindings(world, Dice(1))
    name = next(iter(world.fleet.instances.values())).node
    for _ in range(2):
        node = world.kubernetes.node(name)
        world.kubernetes.taint(node, well_known_taint(node))
    late = [pod for pod in world.cluster.store.pods_on(name) if pod["metadata"]["name"].startswith("late-")]
    assert len(late) == 1


def well_known_taint(node: Node):
    from leeward.model.node import Taint

    assert node is not None
    return Taint(key=well_known.DISRUPTED_TAINT, value="ours", effect="NoSchedule")


def test_a_cache_that_stands_still_shows_the_pods_of_then_and_a_fresh_read_those_of_now():
    world = a_world()
    advance(world, 60)
    name = next(node["metadata"]["name"] for node in world.cluster.store.each("nodes") if on(world, node))
    before = {pod.name for pod in world.kubernetes.pods_on(name)}
    OldCaches(world, Longest(1)).play()
    gone = next(iter(before))
    world.cluster.delete("pods", gone, "default")
    advance(world, 60)
    assert {pod.name for pod in world.kubernetes.pods_on(name, cached=True)} == before
    assert gone not in {pod.name for pod in world.kubernetes.pods_on(name)}
    advance(world, 120)
    assert gone not in {pod.name for pod in world.kubernetes.pods_on(name, cached=True)}


def on(world, node):
    return list(world.cluster.store.pods_on(node["metadata"]["name"]))


def test_operators_lift_the_taint_of_a_drain_which_taints_again():
    world = a_world()
    advance(world, 120)
    world.cluster.create("poddisruptionbudgets", none_may_be_missing())
    member = next(one for one in world.fleet.instances.values() if on(world, {"metadata": {"name": one.node}}))
    world.fleet.unhealthy(member)
    advance(world, 60)
    assert tainted(world, member)
    lifted = LiftedTaints(world, Random(3))
    for _ in range(3):
        world.timeline.after(1, lifted.play, "a test")
    advance(world, 1)
    assert not tainted(world, member)
    advance(world, 100)
    assert tainted(world, member)
    assert [str(one) for one in world.violations] == []


def tainted(world, member):
    taints = world.cluster.store.find("nodes", member.node)["spec"].get("taints") or ()
    return any(taint["key"] == well_known.DISRUPTED_TAINT for taint in taints)


def none_may_be_missing():
    return {
        "metadata": {"name": "none", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
    }


def test_canceled_maintenance_is_listed_as_canceled_and_its_date_does_not_count_any_more():
    world = a_world()
    canceled = CanceledMaintenance(world, Random(1))
    canceled.play()
    (asked,) = world.asked
    canceled._cancel(world.fleet.instances[asked.instance], asked.key, heard=True)
    (listed,) = world.fleet.notices.listed()[asked.instance]
    assert listed.canceled
    known = AskedOf()
    known.read([*world.asked])
    assert known.taken_at(asked.instance, world.asked[-1].at + 601) is None


def test_a_date_that_was_called_off_counts_while_the_message_may_be_under_way():
    known, called_off = AskedOf(), Asked(at=100, instance="i", kind=Kind.MAINTENANCE, key="a", called_off=True)
    known.read([Asked(at=0, instance="i", kind=Kind.MAINTENANCE, key="a", takes=9000), called_off])
    assert (known.taken_at("i", 200), known.taken_at("i", 800)) == (9000, None)


def test_a_removed_zone_is_left_and_added_again():
    world = a_world()
    group = world.fleet.groups["app"]
    limits = LimitsChange(world, Dice(1))
    limits.play()
    (gone,) = set(BEFORE.zones) - set(group.plan.zones)
    advance(world, 180)
    assert gone not in {member.zone for member in group.staying}
    advance(world, 1800)
    assert group.plan.zones == BEFORE.zones


def test_a_refresh_replaces_instances_one_after_the_other():
    world = a_world()
    group = world.fleet.groups["app"]
    old = set(group.members)
    InstanceRefreshes(world, Random(1)).play()
    advance(world, 300)
    assert len(old & set(group.members)) < 3
    assert group.desired == 3


def test_an_hpa_scales_a_deployment_which_its_owner_then_wants_so():
    world = a_world(workloads=(deployment(),))
    Replicas(world, Random(1)).play()
    assert world.replicas["default/web"] == world.cluster.get("deployments", "web", "default")["spec"]["replicas"] != 4
    advance(world, 1000)
    assert world.replicas["default/web"] == 4


def test_an_hpa_scales_up_again_what_another_has_made_smaller():
    world = a_world(workloads=(deployment(),))
    Replicas(world, Random(1)).play()
    advance(world, 1000)
    body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1}}
    world.cluster.scale("deployments", "web", body, "default")
    advance(world, 70)
    assert world.cluster.get("deployments", "web", "default")["spec"]["replicas"] == world.replicas["default/web"] == 4


def test_long_pods_have_an_hour_and_more_and_only_those_with_an_hour_use_it():
    changed = with_long_pods([deployment(f"web-{number}") for number in range(60)], Random(1))
    specs = [one["spec"]["template"] for one in changed]
    graces = {template["spec"]["terminationGracePeriodSeconds"] for template in specs}
    assert {10, HOUR, GREATEST} <= graces
    assert {
        template["spec"]["terminationGracePeriodSeconds"]
        for template in specs
        if template["metadata"].get("annotations")
    } == {HOUR}


def test_a_table_that_is_away_refuses_every_call_and_nothing_else_does():
    world = a_world(faults=Faults(table_outages_per_hour=1))
    world.injector.table_away_until = world.timeline.now() + 60
    with pytest.raises(ThrottledError, match="refuses every request"):
        world.system.ports.claims.read("i")
    assert world.system.ports.instances.describe([]) == {}
    with pytest.raises(ThrottledError):
        world.system.pauses.read("blue")
    advance(world, 61)
    assert world.system.ports.claims.read("i") is None


@pytest.mark.parametrize("away", ["queue_away_until", "concurrency_away_until"])
def test_a_message_waits_while_queue_or_functions_are_away(away):
    world = a_world(faults=Faults(queue_outages_per_hour=1))
    advance(world, 30)
    setattr(world.injector, away, world.timeline.now() + 90)
    world.queue.send("no JSON")
    advance(world, 80)
    assert (world.queue.depth, len(world.dead_letters)) == (1, 0)
    advance(world, 120)
    assert (world.queue.depth, len(world.dead_letters)) == (0, 1)


def test_a_token_is_renewed_when_it_is_refused_and_before_it_is_old():
    world = a_world()
    tokens = RefusedTokens(world, Random(1))
    connections = world.system.clusters.connections
    kubernetes = world.system.ports.clusters.kubernetes("blue")
    for _ in range(6):
        assert kubernetes.nodes()
        advance(world, 600)
    assert connections.refused == 0
    assert kubernetes.nodes()
    advance(world, 1)
    tokens.play()
    assert kubernetes.nodes()
    assert connections.refused == 1


def test_a_token_by_a_clock_that_is_minutes_slow_is_renewed_when_it_is_refused():
    world = a_world()
    RefusedTokens(world, Dice(1))
    kubernetes = world.system.ports.clusters.kubernetes("blue")
    for _ in range(3):
        assert kubernetes.nodes()
        advance(world, 500)
    assert world.system.clusters.connections.refused > 0
    assert [str(one) for one in world.violations] == []


def test_a_deleted_cluster_does_not_answer_and_is_then_known_to_be_gone():
    world = a_world()
    deleted = DeletedCluster(world, Random(1))
    kubernetes = world.system.ports.clusters.kubernetes("blue")
    assert kubernetes.nodes()
    deleted._delete()
    with pytest.raises(ClusterUnreachableError, match="no address"):
        kubernetes.nodes()
    with pytest.raises(ClusterGoneError, match="No cluster found for name: blue"):
        kubernetes.nodes()


def test_in_a_deleted_cluster_a_hook_is_answered_and_nothing_is_tried_again():
    world = a_world()
    DeletedCluster(world, Random(1))._delete()
    advance(world, 60)
    group = world.fleet.groups["app"]
    member, other = list(group.members.values())[:2]
    world.fleet.unhealthy(member)
    world.fleet.notices.maintenance(other, world.timeline.now() + 900)
    advance(world, 1200)
    assert member.gone
    assert not world.system.machine.executions
    advance(world, 900)
    assert [one for one in world.violations if "EKS has deleted" in str(one)] == []
    assert member.id not in world.open_since


def test_each_mishap_belongs_to_a_feature_that_seeds_draw():
    seeds = [drawn(seed) for seed in range(1, 301)]
    assert set(MISHAPS) <= set().union(*seeds)


def test_two_clusters_have_their_own_mishaps():
    names = (Feature.TWO_CLUSTERS, *MISHAPS)
    world = Case(seed=3, hours=0.3, per_hour=10, nodes=6, features=tuple(one.value for one in names)).world()
    assert world.run(0.3, converge=60).unexpected == ()
