"""What every generated fleet has, that it can live, and that the same seed gives the same fleet and arrivals."""

from collections import Counter
from functools import cache
from itertools import pairwise
from random import Random

import pytest

from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.objects import annotations_of, is_ready, name_of, node_of, phase_of
from simulation.fleets import (
    Arrival,
    ArrivalKind,
    arrivals,
    create_workloads,
    generate,
    nodes_by_zone,
    upgrades,
)

OF_UPGRADES = {ArrivalKind.UPGRADE, ArrivalKind.UPGRADE_CONTROLLED, ArrivalKind.UPGRADE_STOPPED}
OF_DISRUPTIONS = {ArrivalKind.DISRUPTION_STOPPED, ArrivalKind.TEMPLATE_CHANGED}

SEEDS = range(40)
HOUR = 3600
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@cache
def fleet(seed, nodes=None):
    return generate(Random(seed), nodes=nodes)


def of_kind(fleet, kind):
    return [obj for obj in fleet.workloads if obj["kind"] == kind]


def budgets_by_app(fleet):
    found = {}
    for budget in of_kind(fleet, "PodDisruptionBudget"):
        found.setdefault(budget["spec"]["selector"]["matchLabels"]["app"], []).append(budget["spec"])
    return found


def replicas(fleet):
    scaled = [*of_kind(fleet, "Deployment"), *of_kind(fleet, "StatefulSet")]
    return {obj["metadata"]["name"]: obj["spec"]["replicas"] for obj in scaled}


def impossible(specs, count):
    least = [spec.get("minAvailable") for spec in specs]
    return len(specs) > 1 or specs[0].get("maxUnavailable") == 0 or least[0] == count


@pytest.mark.parametrize("seed", SEEDS)
def test_a_fleet_has_three_to_six_zones_and_five_to_five_hundred_nodes_in_several_groups(seed):
    some = fleet(seed)
    assert 3 <= len(some.zones) <= 6
    assert 5 <= some.nodes <= 500
    assert len(some.groups) >= 3
    assert len({group.name for group in some.groups}) == len(some.groups)
    for group in some.groups:
        assert 1 <= group.size <= group.maximum
        assert set(group.zones) <= set(some.zones)


@pytest.mark.parametrize("seed", SEEDS)
def test_spot_on_demand_and_an_unselected_group_with_a_foreign_hook_are_always_there(seed):
    groups = fleet(seed).groups
    assert {group.spot for group in groups if group.selected} == {True, False}
    assert [group.foreign_hook for group in groups if not group.selected] == [True]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_policies_select_exactly_the_groups_that_are_selected(seed):
    some = fleet(seed)
    chosen = {group.name: some.policies.selecting(group.name, {}) for group in some.groups}
    assert {name: policy is not None for name, policy in chosen.items()} == {g.name: g.selected for g in some.groups}
    forced = [name for name, policy in chosen.items() if policy and policy.drain.force]
    assert all(name.startswith("batch") for name in forced)


@pytest.mark.parametrize("seed", SEEDS)
def test_some_budgets_can_be_lived_with_and_some_are_impossible(seed):
    counts, budgets = replicas(fleet(seed)), budgets_by_app(fleet(seed))
    found = {impossible(specs, counts[app]) for app, specs in budgets.items() if counts[app] > 1}
    assert found == {True, False}


def test_every_kind_of_trouble_comes_up_among_some_fleets():
    fleets = [fleet(seed) for seed in SEEDS]
    templates = [obj["spec"]["template"] for some in fleets for obj in of_kind(some, "Deployment")]
    names = {name.rsplit("/", 1)[-1] for template in templates for name in template["metadata"]["annotations"]}
    assert names == {"ignore-sigterm", "never-ready", "start-delay"}
    specs = [specs for some in fleets for specs in budgets_by_app(some).values()]
    assert any(len(of_one) > 1 for of_one in specs)
    assert any(spec.get("maxUnavailable") == 0 for of_one in specs for spec in of_one)
    assert any(spec.get("unhealthyPodEvictionPolicy") for of_one in specs for spec in of_one)
    assert all(of_kind(some, "Pod") and of_kind(some, "DaemonSet") for some in fleets)
    assert any(template["spec"].get("volumes") for template in templates)
    assert any("priorityClassName" in template["spec"] for template in templates)
    groups = [group for some in fleets for group in some.groups]
    assert any(group.capacity_rebalance for group in groups)
    assert any(group.maximum == group.size for group in groups)
    assert any(group.foreign_hook and group.selected for group in groups)
    assert len({group.instance_type for group in groups}) > 3


def test_most_pods_can_be_evicted_so_that_drains_come_to_an_end():
    for seed in range(10):
        counts, budgets = replicas(fleet(seed, nodes=60)), budgets_by_app(fleet(seed, nodes=60))
        blocked = sum(counts[app] for app, specs in budgets.items() if impossible(specs, counts[app]))
        assert blocked <= sum(counts.values()) / 4


@pytest.mark.parametrize("nodes", [1, 2, 4, 5, 7, 100, 500])
def test_the_number_of_nodes_can_be_asked_for(nodes):
    assert fleet(1, nodes).nodes == nodes


@pytest.mark.parametrize("nodes", [0, 501])
def test_a_number_of_nodes_out_of_range_is_refused(nodes):
    with pytest.raises(ValueError, match=f"nodes: found {nodes}, expected 1 to 500"):
        generate(Random(1), nodes=nodes)


def test_most_fleets_are_small_and_a_few_are_large():
    sizes = [generate(Random(seed)).nodes for seed in range(300)]
    assert sum(size <= 60 for size in sizes) >= 0.8 * len(sizes)
    assert max(sizes) > 150


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_tied_to_zones_is_tied_to_those_that_can_lose_a_node(seed):
    some = fleet(seed)
    members = nodes_by_zone(some.groups)
    assert sum(members.values()) == some.nodes
    for obj in of_kind(some, "StatefulSet"):
        required = obj["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]
        (expression,) = required["nodeSelectorTerms"][0]["matchExpressions"]
        assert all(members[zone] >= 2 for zone in expression["values"])


def test_stateful_sets_jobs_and_every_rule_among_pods_come_up_among_some_fleets():
    fleets = [fleet(seed) for seed in SEEDS]
    assert all(of_kind(some, "StatefulSet") and of_kind(some, "Job") for some in fleets)
    specs = [obj["spec"]["template"]["spec"] for some in fleets for obj in of_kind(some, "Deployment")]
    kinds = {(kind, *rules) for spec in specs for kind, rules in spec.get("affinity", {}).items()}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    assert {(f"pod{kind}", how) for kind in ("Affinity", "AntiAffinity") for how in (REQUIRED, preferred)} <= kinds
    rules = [rule for spec in specs for rule in spec.get("topologySpreadConstraints", [])]
    found = {(rule["topologyKey"].rpartition("/")[2], rule["whenUnsatisfiable"]) for rule in rules}
    assert {("zone", "DoNotSchedule"), ("zone", "ScheduleAnyway"), ("hostname", "DoNotSchedule")} <= found
    policies = {obj["spec"]["podManagementPolicy"] for some in fleets for obj in of_kind(some, "StatefulSet")}
    assert policies == {"OrderedReady", "Parallel"}


class Begun:
    """The cluster of a fleet after five minutes."""

    def __init__(self, some):
        self.now = 0.0
        self.cluster = Cluster(clock=lambda: self.now)
        for group in some.groups:
            for number in range(group.size):
                zone = group.zones[number % len(group.zones)]
                name = f"{group.name}-{number}"
                self.cluster.add_node(NodeSpec(name=name, zone=zone, instance_type=group.instance_type))
        create_workloads(some, self.cluster)
        self.wait(300)

    def wait(self, seconds):
        self.now += seconds
        self.cluster.step(self.now)

    def nowhere(self):
        return [name_of(pod) for pod in self.cluster.list("pods") if node_of(pod) is None]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("nodes", [5, 12])
def test_pods_remain_schedulable_whichever_node_is_lost(seed, nodes):
    begun = Begun(fleet(seed, nodes=nodes))
    for node in [name_of(node) for node in begun.cluster.list("nodes")]:
        lost = begun.cluster.get("nodes", node)
        begun.cluster.delete("nodes", node)
        begun.wait(900)
        assert begun.nowhere() == []
        assert [
            name_of(pod)
            for pod in begun.cluster.list("pods")
            if not is_ready(pod)
            and phase_of(pod) != "Succeeded"
            and "local.leeward.dev/never-ready" not in annotations_of(pod)
        ] == []
        begun.cluster.install(lost)
        begun.wait(60)


@pytest.mark.parametrize("seed", range(4))
def test_all_pods_of_a_fleet_come_up_on_its_nodes(seed):
    cluster = Begun(fleet(seed, nodes=12)).cluster
    pods = cluster.list("pods")
    assert [pod["metadata"]["name"] for pod in pods if node_of(pod) is None] == []
    unready = [pod for pod in pods if not is_ready(pod)]
    assert all("local.leeward.dev/never-ready" in pod["metadata"]["annotations"] for pod in unready)
    assert len(pods) >= 12 * 6
    assert cluster.history.violations() == []


def test_the_same_seed_gives_the_same_fleet_and_arrivals():
    for seed in range(5):
        first, second = (generate(Random(f"{seed}/fleet")) for _ in range(2))
        assert first == second
        assert arrivals(first, Random(seed), 6, 200) == arrivals(second, Random(seed), 6, 200)
    assert generate(Random(1)) != generate(Random(2))


def test_arrivals_come_in_order_within_the_hours_about_as_often_as_asked():
    found = arrivals(fleet(1), Random(1), 50, 200)
    times = [arrival.at_seconds for arrival in found]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] < 50 * HOUR
    assert 0.85 * 200 <= len(found) / 50 <= 1.15 * 200


def test_every_kind_arrives_and_spot_warnings_most():
    kinds = Counter(arrival.kind for arrival in arrivals(fleet(1), Random(1), 10, 200))
    assert set(kinds) == set(ArrivalKind) - OF_UPGRADES - OF_DISRUPTIONS
    assert kinds.most_common(1)[0][0] is ArrivalKind.SPOT_WARNING


def test_upgrades_and_what_is_done_to_them_have_a_plan_of_their_own():
    assert {arrival.kind for arrival in upgrades(Random(1), 10, 5)} == OF_UPGRADES
    assert upgrades(Random(1), 10, 0) == ()


def test_warnings_come_in_bursts_at_times():
    found = [a for a in arrivals(fleet(1), Random(1), 50, 20) if a.kind is ArrivalKind.SPOT_WARNING]
    gaps = [after.at_seconds - before.at_seconds for before, after in pairwise(found)]
    assert sum(gap < 2 for gap in gaps) >= 5


def test_nothing_arrives_where_nothing_is_asked_for():
    assert arrivals(fleet(1), Random(1), 10, 0) == ()
    assert arrivals(fleet(1), Random(1), 0, 100) == ()


def test_a_pick_fits_whatever_there_is_to_choose_from():
    found: tuple[Arrival, ...] = arrivals(fleet(1), Random(1), 10, 200)
    assert all(0 <= arrival.pick < 2**31 for arrival in found)
    assert len({arrival.pick % 7 for arrival in found}) == 7
