"""Worlds that differ: what a seed draws, what each feature changes, and that each runs to its end."""

from dataclasses import dataclass, replace

import pytest

from simulation.asked import Kind
from simulation.aws.compute import IN_SERVICE, STANDBY
from simulation.aws.hook_waits import global_time_out
from simulation.case import Case
from simulation.fault_rates import Faults
from simulation.faults import Injector
from simulation.features import INDEPENDENT, WEIGHTS, Feature, drawn, with_faults
from simulation.timeline import Streams, Timeline
from simulation.world import World
from tests.simulation.fleet_stand_in import SMALL, GroupPlan

SEED = 4


@dataclass(frozen=True, kw_only=True)
class Reusing(GroupPlan):
    reuses: bool = True
    launches_warm: bool = False


def case(*features, hours=0.1, **more):
    names = tuple(feature.value for feature in features)
    return Case(seed=SEED, hours=hours, per_hour=20, nodes=more.pop("nodes", 6), features=names, **more)


def test_every_feature_is_drawn_by_some_of_the_first_three_hundred_seeds_and_no_seed_has_more_than_four():
    seeds = [drawn(seed) for seed in range(1, 301)]
    assert set().union(*seeds) == set(Feature)
    assert set(Feature) == {*WEIGHTS, *INDEPENDENT}
    assert {len(found - INDEPENDENT.keys()) for found in seeds} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("feature", sorted(INDEPENDENT))
def test_features_with_dice_of_their_own_are_drawn_as_often_as_they_say_and_move_no_other_draw(feature, monkeypatch):
    drawing = [seed for seed in range(1, 301) if feature in drawn(seed)]
    assert 0.3 < len(drawing) / (300 * INDEPENDENT[feature]) < 2
    others = {seed: drawn(seed) - INDEPENDENT.keys() for seed in drawing}
    monkeypatch.setattr("simulation.features.INDEPENDENT", {})
    assert {seed: drawn(seed) for seed in drawing} == others


def test_token_buckets_limit_calls_where_nothing_else_fails():
    assert with_faults(Faults.none(), frozenset({Feature.TOKEN_BUCKETS})).token_buckets


@pytest.mark.parametrize("feature", sorted(Feature))
def test_a_world_with_the_feature_runs_to_its_end_without_an_error_of_its_own(feature):
    world = case(feature, nodes=None if feature is Feature.TINY else 6).world()
    world.run(0.1, converge=60)
    assert world.system.unexpected == []
    assert not world.timeline.stopped


def test_a_case_keeps_its_features_in_its_file():
    written = case(Feature.WEBHOOK, Feature.TWO_HOOKS)
    assert Case.from_json(written.to_json()) == written


def test_a_tiny_fleet_has_one_to_four_nodes():
    sizes = {Case(seed=seed, hours=1, per_hour=1, features=(Feature.TINY,)).size for seed in range(30)}
    assert sizes == {1, 2, 3, 4}


def test_groups_have_hooks_that_their_policies_name_as_ours():
    world = case(Feature.TWO_HOOKS, Feature.LAUNCH_HOOK).world()
    hooks = [set(group.hooks) for group in world.fleet.groups.values() if group.plan.selected]
    assert all({"our-second", "our-launch"} <= names for names in hooks)
    assert world.ours("our-second", next(iter(world.fleet.groups)))


def test_groups_may_be_at_their_limits():
    low, high = case(Feature.MIN_SIZE).world(), case(Feature.MAX_SIZE).world()
    assert all(group.minimum >= group.desired - 1 for group in low.fleet.groups.values())
    assert all(group.maximum == group.desired for group in high.fleet.groups.values())


def test_only_kubernetes_fails_where_a_feature_says_so():
    faults = with_faults(Faults.all(), frozenset({Feature.ONLY_KUBERNETES_FAILS}))
    assert faults == faults.of_kubernetes()
    assert faults.api_hangs_per_hour > 0
    assert Faults.all() != Faults.all().of_kubernetes()


def gate(**since):
    injector = Injector(Faults.all(), Streams(1), Timeline(), lambda _: None)
    for name, value in since.items():
        setattr(injector, name, value)
    return injector


def test_a_hanging_server_answers_nothing_or_lists_alone():
    later = Timeline().now() + 60
    assert gate(api_hangs_until=later).answers_after("pods_on") == float("inf")
    assert gate(api_hangs_until=later, lists_work=True).answers_after("pods_on") == 0
    assert gate(api_hangs_until=later, lists_work=True).answers_after("taint") == float("inf")
    assert 0 < gate(api_slow_until=later).answers_after("pods_on") < 10


def test_a_hook_ends_after_a_hundred_time_outs_or_two_days():
    assert (global_time_out(300), global_time_out(3600)) == (30_000, 172_800)
    world = World(1, SMALL, Faults.none(), ())
    world._populate()
    member = next(iter(world.fleet.instances.values()))
    world.system.groups.put_hook(hook_of(world, member), default_result=hook_of(world, member).default)
    world.fleet.unhealthy(member)

    def beat():
        world.fleet.heartbeat(member.group, "slow-hook", member.id)

    world.timeline.every(30, beat, "a test")
    world.timeline.run_until(world.timeline.now() + 60 * 100 - 1)
    assert (member.group, "slow-hook", member.id) not in world.fleet.timed_out
    world.timeline.run_until(world.timeline.now() + 2)
    assert (member.group, "slow-hook", member.id) in world.fleet.timed_out


def hook_of(world, member):
    from leeward.model.group import TERMINATING, LifecycleHook

    return LifecycleHook(name="slow-hook", group=member.group, transition=TERMINATING, heartbeat_timeout=60)


def test_what_is_scaled_in_returns_to_its_warm_pool_once_no_hook_holds_it():
    world = World(1, replace(SMALL, groups=(Reusing(),)), Faults.none(), ())
    group = next(iter(world.fleet.groups.values()))
    world._populate()
    world.fleet.resize(group, group.desired - 1)
    world.timeline.run_until(world.timeline.now() + 400)
    assert [m for m in world.fleet.instances.values() if m.lifecycle == "Warmed:Stopped"]


@pytest.mark.parametrize("launches_warm", [True, False])
def test_a_group_that_grows_again_starts_what_waits_in_its_warm_pool_under_its_old_id(launches_warm):
    world = World(1, replace(SMALL, groups=(Reusing(launches_warm=launches_warm),)), Faults.none(), ())
    group = next(iter(world.fleet.groups.values()))
    world._populate()
    known = set(world.fleet.instances)
    world.fleet.resize(group, group.desired - 1)
    world.timeline.run_until(world.timeline.now() + 400)
    world.fleet.resize(group, group.desired + 1)
    world.timeline.run_until(world.timeline.now() + 200)
    assert (set(group.members) <= known) is launches_warm
    assert {(one.lifecycle, one.state, one.joined) for one in group.members.values()} == {(IN_SERVICE, "running", True)}
    ready = {node["metadata"]["name"] for node in world.cluster.store.each("nodes") if is_ready(node)}
    assert {one.node for one in group.members.values()} <= ready


def test_only_groups_of_on_demand_instances_have_a_warm_pool():
    groups = case(Feature.WARM_LAUNCHES).world().fleet.groups.values()
    assert {group.plan.reuses for group in groups if group.plan.spot} == {False}
    assert {group.plan.reuses for group in groups if group.plan.selected and not group.plan.spot} == {True}


def is_ready(node):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"]["conditions"])


def test_an_instance_whose_capacity_reservation_is_taken_back_is_warned_and_ended_two_minutes_later():
    world = World(1, SMALL, Faults.none(), ())
    world._populate()
    member, now = next(iter(world.fleet.instances.values())), world.timeline.now()
    world.fleet.notices.reservation_warning(member)
    said = [line for line in world.story if "Capacity Reservation Instance Interruption Warning" in line]
    assert [member.id in line for line in said] == [True]
    assert [(one.kind, one.takes) for one in world.asked] == [(Kind.RESERVATION, now + 120)]
    world.timeline.run_until(now + 121)
    assert member.gone


def test_an_instance_in_standby_counts_for_no_size_until_it_is_back():
    world = World(1, SMALL, Faults.none(), ())
    world._populate()
    member = next(iter(world.fleet.instances.values()))
    group = world.fleet.groups[member.group]
    world.fleet.detachment.enter_standby(member)
    assert (member.lifecycle, group.desired, len(group.staying)) == (STANDBY, 2, 2)
    world.fleet.detachment.exit_standby(member)
    assert (group.desired, len(group.staying)) == (3, 3)


def test_a_webhook_fails_the_evictions_of_its_workload_alone():
    world = World(1, SMALL, Faults.none(), ())
    world._populate()
    world.timeline.afterwards = world._after
    world.timeline.run_until(world.timeline.now() + 120)
    world.injector.refused["web"] = world.timeline.now() + 600
    world.injector.active = True
    from leeward.adapters.kubernetes.answers import ApiRequest

    pod = next(iter(world.cluster.store.each("pods")))["metadata"]["name"]
    request = ApiRequest(verb="create", resource="pods/eviction", path=f"default/{pod}")
    assert world.kubernetes.admission(request).status == 500
    assert world.kubernetes.admission(ApiRequest(verb="patch", resource="nodes", path="node")) is None
    world.injector.refused.clear()
    assert world.kubernetes.admission(request) is None


def test_a_world_of_weeks_looks_less_often_while_nothing_is_under_way():
    quiet = case(hours=200, faults=Faults.none(), arrivals=()).world()
    reconcilers = []
    quiet.heard = reconcilers.append
    quiet._populate()
    before = quiet.invocations.started
    quiet.timeline.run_until(quiet.timeline.now() + 2 * 3600)
    assert quiet.invocations.started - before < 60
    assert quiet.days_ahead == 14
