"""Worlds in which one deployment serves two clusters: what each of them is, and how rules distinguish them."""

from dataclasses import replace
from functools import partial

import pytest

from leeward.errors import ClusterUnreachableError
from leeward.model.group import TERMINATING, HookResult, LifecycleHook
from leeward.model.node import Node, disruption_taint
from leeward.model.termination import Cause, CauseKind
from simulation.aws.events import DEPLOYMENT
from simulation.case import Case
from simulation.cluster_rules import ASKED_WITHIN, TAINTED_WITHIN, ClusterRules
from simulation.excerpts import Excerpt, Part
from simulation.fault_rates import Faults
from simulation.features import INDEPENDENT, Feature, drawn
from simulation.journal import Journal
from simulation.rule import Rule
from simulation.second_cluster import second_fleet
from simulation.site import shared_out
from simulation.timeline import Streams
from tests.fakes.builders import a_subject
from tests.simulation.second_cluster_stand_in import a_world_of_two

SEED = 3


two_clusters = partial(a_world_of_two, Feature.TWO_CLUSTERS)


@pytest.fixture
def world():
    """Two clusters with their nodes, in which no function runs and nothing arrives."""
    found = two_clusters()
    found._populate()
    return found


@pytest.fixture
def rules(world):
    return ClusterRules(world.sites)


def broken(rules):
    return [rule for rule, _ in rules.check()]


def serving(site, *, selected=True):
    members = (m for m in site.fleet.instances.values() if site.fleet.groups[m.group].plan.selected is selected)
    return next(members)


def node_of(site, member):
    return Node.from_json(site.cluster.store.find("nodes", member.node))


def test_a_tenth_of_the_seeds_has_two_clusters_and_moves_no_other_draw(monkeypatch):
    with_two = [seed for seed in range(1, 301) if Feature.TWO_CLUSTERS in drawn(seed)]
    assert 10 < len(with_two) < 60
    others = {seed: drawn(seed) - INDEPENDENT.keys() for seed in with_two}
    monkeypatch.setattr("simulation.features.INDEPENDENT", {})
    assert {seed: drawn(seed) for seed in with_two} == others


def test_the_first_cluster_is_what_it_is_without_the_second():
    alone = Case(seed=SEED, hours=1, per_hour=30, nodes=6).world()
    beside = two_clusters().sites[0]
    assert {name: group.plan for name, group in alone.fleet.groups.items()} == {
        name: group.plan for name, group in beside.fleet.groups.items()
    }
    assert alone.policies == beside.policies


def test_every_group_instance_and_node_belongs_to_one_cluster(world):
    blue, green = world.sites
    assert {*blue.fleet.groups} | {*green.fleet.groups} == {*world.fleet.groups}
    assert blue.fleet.groups.keys().isdisjoint(green.fleet.groups)
    assert len(blue.fleet.instances) + len(green.fleet.instances) == len(world.fleet.instances)
    for site in world.sites:
        there = {node["spec"]["providerID"].rpartition("/")[2] for node in site.cluster.store.each("nodes")}
        assert there == {*site.fleet.instances}


def test_the_policies_of_both_select_the_same_names_of_groups_and_some_clusters_miss_one():
    fleets = [second_fleet(Streams(f"{seed}/green").stream("fleet plan")) for seed in range(30)]
    assert {len(fleet.policies.policies) for fleet in fleets} == {1, 2}
    for fleet in fleets:
        patterns = tuple(one.selector.groups[0].removesuffix("*") for one in fleet.policies.policies)
        assert [group.selected for group in fleet.groups] == [group.name.startswith(patterns) for group in fleet.groups]
        assert any(group.selected for group in fleet.groups)


def test_nodes_of_both_have_the_same_names_in_some_worlds_and_others_in_others():
    def shared(seed):
        found = two_clusters(seed=seed)
        found._populate()
        names = [{node["metadata"]["name"] for node in site.cluster.store.each("nodes")} for site in found.sites]
        return bool(names[0] & names[1])

    assert {shared(seed) for seed in range(1, 7)} == {True, False}


def test_an_api_that_is_away_or_hangs_is_one_cluster_s_alone(world):
    for site in world.sites:
        site.injector.active = True
    world.sites[1].injector.api_down_until = world.now + 100
    with pytest.raises(ClusterUnreachableError):
        world.system.clusters.kubernetes("green").nodes()
    assert world.system.clusters.kubernetes("blue").nodes()
    assert [site.troubled(0) for site in world.sites] == [False, True]
    world.sites[1].injector.stop()
    world.sites[0].injector.api_hangs_until = world.now + 100
    assert world.system.clusters.kubernetes("green").nodes()
    with pytest.raises(ClusterUnreachableError):
        world.system.clusters.kubernetes("blue").nodes()


def test_the_second_api_has_dice_of_its_own_for_the_same_faults():
    found = two_clusters(Feature.HANGING_API, faults=Faults.all())
    first, second = (site.injector for site in found.sites)
    assert second.faults == first.faults.of_kubernetes()
    assert second.faults.api_hangs_per_hour == 3
    assert first.random("hangs").random() != second.random("hangs").random()


def test_arrivals_are_shared_out_and_none_is_lost():
    plan = Case(seed=SEED, hours=1, per_hour=60, features=(Feature.TWO_CLUSTERS,)).planned()
    scenes = ("blue", "green")
    parts = [shared_out(plan, scenes, scene) for scene in scenes]
    assert sorted(map(id, (*parts[0], *parts[1]))) == sorted(map(id, plan))
    assert all(len(part) > len(plan) / 4 for part in parts)


def test_messages_records_executions_and_nodes_of_both_go_through_one_deployment():
    found = two_clusters(seed=5, arrivals=None, disruption=True)
    outcome = found.run(0.5)
    assert [str(one) for one in outcome.violations] == []
    assert outcome.unexpected == ()
    records = found.claims.records
    assert {found.fleet.served[found.fleet.homes[instance]] for instance in records} == {"blue", "green"}
    assert {*found.disruptions} == {"blue", "green"}
    assert all(site.evictions for site in found.sites)
    assert all(not site.owns(one) for one in records for site in found.sites if site.cluster_name != home(found, one))


def home(world, instance):
    return world.fleet.served[world.fleet.homes[instance]]


def test_the_same_seed_gives_the_same_history():
    digests = {two_clusters(seed=8, faults=Faults.all(), arrivals=None).run(0.1, 120).digest for _ in range(2)}
    assert len(digests) == 1


def test_pools_of_both_clusters_are_taken_back_at_the_same_moment():
    found = two_clusters(seed=5)
    found.run(0.1, 0)
    at = {}
    for instance, when in found.warned:
        at.setdefault(when, set()).add(home(found, instance))
    assert {"blue", "green"} in at.values()


def test_hosts_of_both_are_retired_by_one_event():
    found = two_clusters(seed=5)
    found._populate()
    found.timeline.run_until(found.now + 60)
    (both,) = [player for player in found._players if hasattr(player, "_retire_hosts")]
    both._retire_hosts()
    named = {home(found, asked.instance) for asked in found.asked}
    assert named == {"blue", "green"}
    assert len({(asked.key, asked.takes) for asked in found.asked}) == 1


def test_a_sound_world_breaks_no_rule_between_its_clusters(rules):
    assert broken(rules) == []


def test_a_write_to_the_wrong_api_is_noticed_also_where_it_has_no_effect(world, rules):
    blue, green = world.sites
    node = node_of(green, serving(green))
    green.kubernetes.taint(node, disruption_taint(DEPLOYMENT))
    assert broken(rules) == []
    blue.kubernetes.event(node, reason="Terminating", message="", warning=True, now=world.timeline.instant())
    assert broken(rules) == [Rule.ELSEWHERE]
    assert broken(rules) == []


def test_a_launch_in_another_cluster_s_group_is_noticed(world, rules):
    blue, green = world.sites
    old, group = serving(blue), next(iter(green.fleet.groups.values()))
    group.maximum += 1
    subnet = f"subnet-{group.plan.zones[0]}"
    assert world.system.groups.launch(group=group.name, subnet=subnet, token=f"{old.id}-1-{subnet}").launched
    assert broken(rules) == [Rule.ELSEWHERE]


def test_a_hook_on_a_group_that_only_the_other_s_policies_select_is_noticed(world, rules):
    for site in world.sites:
        for group in list(site.fleet.groups.values()):
            known = replace(hook_on(group), name="ours")
            world.system.groups.put_hook(known, default_result=HookResult.CONTINUE)
            assert broken(rules) == ([] if group.plan.selected else [Rule.SELECTED])


def hook_on(group):
    return LifecycleHook(name="", group=group.name, transition=TERMINATING, heartbeat_timeout=300)


@pytest.mark.parametrize("manual", [False, True])
def test_a_termination_in_a_group_that_no_policy_selects_is_noticed_unless_an_operator_asked_for_it(
    world, rules, manual
):
    green, now = world.sites[1], world.timeline.instant()
    for selected in (True, False):
        member = serving(green, selected=selected)
        if manual:
            world.started_manually.add(member.id)
        cause = Cause(id=f"spot#{member.id}", kind=CauseKind.SPOT_INTERRUPTION, at=now)
        world.claims.claim(replace(a_subject(member.id), group=member.group), cause, now)
        assert broken(rules) == ([] if selected or manual else [Rule.SELECTED])


@pytest.mark.parametrize(
    ("tainted", "away", "found"),
    [(False, "", [Rule.TAINT]), (False, "green", [Rule.TAINT]), (False, "blue", []), (True, "", [])],
)
def test_a_warned_node_without_a_taint_is_noticed_where_its_own_api_answers(world, rules, tainted, away, found):
    blue = world.sites[0]
    world.timeline.run_until(world.now + 200)
    member = serving(blue)
    world.warned.append((member.id, world.now))
    for site in world.sites:
        if site.cluster_name == away:
            site.injector.api_down_until = world.now + 1
    if tainted:
        blue.kubernetes.taint(node_of(blue, member), disruption_taint(DEPLOYMENT))
    assert broken(rules) == []
    world.timeline.run_until(world.now + TAINTED_WITHIN + 0.1)
    assert broken(rules) == found


@pytest.mark.parametrize(("away", "found"), [("", [Rule.MINUTE]), ("green", [Rule.MINUTE]), ("blue", [])])
def test_an_api_that_the_reconciler_does_not_reach_is_noticed_where_it_answers(world, rules, away, found):
    world.timeline.run_until(world.now + 30)
    world.system.reconciled = world.now
    world.sites[1].kubernetes.listed["reconciler"] = world.now
    for site in world.sites:
        if site.cluster_name == away:
            site.injector.api_down_until = world.now + 1
    world.timeline.run_until(world.now + ASKED_WITHIN + 0.1)
    assert broken(rules) == found


def test_a_part_of_a_mapping_shows_its_own_entries_as_they_are():
    whole = {"a1": 1, "b1": 2}
    part = Part(lambda: whole, lambda key: key.startswith("a"))
    assert dict(part) == {"a1": 1}
    assert "b1" not in part
    assert part.get("b1") is None
    whole["a2"] = 3
    assert (len(part), list(part.values())) == (2, [1, 3])


def test_an_excerpt_of_a_journal_grows_with_it():
    journal = Journal()
    excerpt = Excerpt(journal, lambda number: number % 2 == 0)
    for number in range(5):
        journal.append(number)
    assert (len(excerpt), excerpt[1:], excerpt[0], list(excerpt)) == (3, [2, 4], 0, [0, 2, 4])
    journal.append(6)
    assert excerpt[3:] == [6]
