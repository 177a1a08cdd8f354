"""Waves over random fleets: no rule is ever broken, the running machine follows the plan, and few waves are enough."""

import os
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.budgets.pdb import PdbIndex
from leeward.model.pod import Owner, Pod, PodDisruptionBudget
from leeward.upgrade.waves.model import (
    ClusterConstraints,
    Limits,
    WaveNode,
    cluster_constraints,
    wave_node,
)
from leeward.upgrade.waves.planner import DrainOrder, next_nodes, plan_waves

EXAMPLES = int(os.environ.get("EXAMPLES", "150"))  # make test-long asks for more
START = datetime(2024, 1, 1, tzinfo=UTC)


def a_fleet(chance, *, nodes, pods, replicas, budgeted=0.5, allowed=(0, 1, 1, 2, 3), several=0.0, zones=3):
    """Pods and budgets of a random cluster; `several`: the share of workloads that a second budget selects too."""
    places = [f"n{number:04}" for number in range(nodes) for _ in range(pods)]
    chance.shuffle(places)
    found, budgets, number = [], [], 0
    while places:
        app, count = f"app-{number}", min(chance.randint(*replicas), len(places))
        number += 1
        owner = Owner(api_version="apps/v1", kind="ReplicaSet", name=app)
        for index in range(count):
            place = places.pop()
            name = f"{app}-{index}"
            labels = {"app": app, "team": f"t{number % 5}"}
            found.append(
                Pod(
                    namespace="shop",
                    name=name,
                    uid=name,
                    node=place,
                    phase="Running",
                    labels=labels,
                    owner=owner,
                    ready=True,
                )
            )
        for copy in range((chance.random() < budgeted) + (chance.random() < several)):
            budgets.append(
                PodDisruptionBudget(
                    namespace="shop",
                    name=f"{app}-{copy}",
                    selector={"matchLabels": {"app": app}},
                    disruptions_allowed=chance.choice(allowed),
                )
            )
    return joined(chance, nodes, found, budgets, zones), cluster_constraints(budgets, found)


def joined(chance, count, pods, budgets, zones):
    index, on = PdbIndex(budgets), {}
    for pod in pods:
        on.setdefault(pod.node, []).append(pod)
    names = [f"n{number:04}" for number in range(count)]
    return [
        wave_node(
            name,
            f"z{number % zones}",
            START + timedelta(hours=chance.randint(0, 50)),
            on.get(name, ()),
            index,
            failed_before=chance.random() < 0.1,
        )
        for number, name in enumerate(names)
    ]


fleets = st.builds(
    lambda seed, nodes, pods, most: a_fleet(
        random.Random(seed), nodes=nodes, pods=pods, replicas=(1, most), several=0.1
    ),
    st.integers(0, 2**32),
    st.integers(0, 25),
    st.integers(0, 6),
    st.integers(1, 8),
)
all_limits = st.builds(
    Limits,
    together=st.integers(1, 8),
    per_zone=st.dictionaries(st.sampled_from(["z0", "z1"]), st.integers(1, 3), max_size=2),
    one_zone=st.booleans(),
)
orders = st.sampled_from(DrainOrder)


def together_is_fine(nodes, limits, rival):
    """The rules, said anew: what the planner may never do with nodes that are on their way together."""
    assert len(nodes) <= limits.together
    zones = Counter(node.zone for node in nodes)
    assert all(zones[zone] <= most for zone, most in limits.per_zone.items())
    assert not limits.one_zone or len(zones) <= 1
    for budget in {name for node in nodes for name in node.budgets}:
        holders = [node.budgets[budget] for node in nodes if budget in node.budgets]
        assert len(holders) == 1 or sum(holders) <= rival.allowed[budget]
    for workload in {name for node in nodes for name in node.workloads} & rival.replicas.keys():
        holders = [node.workloads[workload] for node in nodes if workload in node.workloads]
        assert len(holders) == 1 or sum(holders) < rival.replicas[workload]


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleets, all_limits, orders, st.integers(0, 3))
def test_every_node_is_in_one_wave_and_no_wave_breaks_a_rule(fleet, limits, order, seed):
    nodes, rival = fleet
    by_name = {node.name: node for node in nodes}
    waves = plan_waves(nodes, limits, rival, order=order, seed=seed)
    assert sorted(name for wave in waves for name in wave) == sorted(by_name)
    for wave in waves:
        together_is_fine([by_name[name] for name in wave], limits, rival)
        assert order is not DrainOrder.ZONE or len({by_name[name].zone for name in wave}) == 1
    failed = [any(by_name[name].failed_before for name in wave) for wave in waves]
    assert failed == sorted(failed)
    assert all(len({by_name[name].failed_before for name in wave}) == 1 for wave in waves)


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleets, all_limits, orders, st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(fleet, limits, order, chance):
    nodes, rival = fleet
    shuffled = chance.sample(nodes, len(nodes))
    assert plan_waves(nodes, limits, rival, order=order) == plan_waves(shuffled, limits, rival, order=order)


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleets, all_limits, orders)
def test_a_machine_that_ends_a_wave_before_the_next_walks_the_plan(fleet, limits, order):
    nodes, rival = fleet
    by_name = {node.name: node for node in nodes}
    limits = Limits(
        together=limits.together, per_zone=limits.per_zone, one_zone=limits.one_zone or order is DrainOrder.ZONE
    )
    waves = plan_waves(nodes, limits, rival, order=order)
    remaining = [by_name[name] for wave in waves for name in wave]
    for wave in waves:
        started = next_nodes(remaining, (), limits, rival)
        assert set(started) == set(wave)
        remaining = [node for node in remaining if node.name not in started]


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleets, all_limits, orders, st.randoms(use_true_random=False))
def test_a_machine_that_never_waits_for_a_wave_breaks_no_rule_and_comes_to_an_end(fleet, limits, order, chance):
    """Nodes finish in any order, one at a time; each that fits starts at once, beside those that still drain."""
    nodes, rival = fleet
    by_name = {node.name: node for node in nodes}
    waves = plan_waves(nodes, limits, rival, order=order)
    remaining = [by_name[name] for wave in waves for name in wave]
    busy, steps = [], 0
    while remaining or busy:
        started = next_nodes(remaining, busy, limits, rival)
        busy += [by_name[name] for name in started]
        remaining = [node for node in remaining if node.name not in started]
        together_is_fine(busy, limits, rival)
        assert busy
        busy.pop(chance.randrange(len(busy)))
        steps += 1
    assert steps == len(nodes)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32))
def test_the_index_finds_the_budgets_that_asking_each_of_them_finds(seed):
    chance = random.Random(seed)
    pairs = [{"app": "a"}, {"app": "b"}, {"team": "x"}, {"app": "a", "team": "x"}, {}]
    selectors = [None, {}, *({"matchLabels": one} for one in pairs)]
    selectors.append({"matchExpressions": [{"key": "team", "operator": "Exists"}]})
    budgets = [
        PodDisruptionBudget(
            namespace=chance.choice("mn"), name=f"b{n}", selector=chance.choice(selectors), disruptions_allowed=1
        )
        for n in range(8)
    ]
    index = PdbIndex(budgets)
    for labels in pairs:
        pod = Pod(namespace=chance.choice("mn"), name="p", uid="p", node="", phase="Running", labels=labels)
        assert {one.key for one in index.selecting(pod)} == {one.key for one in budgets if one.selects(pod)}


def fewest(nodes, limits, rival):
    """No plan can do with less: by number, by zone, by budget, and by nodes no two of which can go together."""
    loads, alone = Counter(), Counter()
    for node in nodes:
        for budget, load in node.budgets.items():
            if load > rival.allowed[budget]:
                alone[budget] += 1
            else:
                loads[budget] += load
    by_budget = [
        alone[budget] + -(-loads[budget] // max(rival.allowed[budget], 1)) for budget in loads.keys() | alone.keys()
    ]
    return max([-(-len(nodes) // limits.together), *by_budget, _clique(nodes, rival)], default=0)


def _clique(nodes, rival):
    """A greedy one: nodes that exclude each other by some budget, grown from each of the busiest nodes."""
    apart = {}
    for node in nodes:
        apart[node.name] = {
            other.name
            for other in nodes
            if other is not node
            and any(
                b in other.budgets and load + other.budgets[b] > rival.allowed[b] for b, load in node.budgets.items()
            )
        }
    best = 0
    for first in sorted(apart, key=lambda name: -len(apart[name]))[:20]:
        clique, left = [first], apart[first]
        while left:
            chosen = max(sorted(left), key=lambda name: len(apart[name] & left))
            clique.append(chosen)
            left = left & apart[chosen]
        best = max(best, len(clique))
    return best


@pytest.mark.parametrize(
    ("nodes", "pods", "replicas", "together", "at_most"),
    [
        (100, 20, (20, 60), 10, 1.05),  # large workloads, a budget allows a quarter: the number of nodes decides
        (100, 5, (3, 10), 33, 1.05),  # budgets decide
        (100, 20, (3, 10), 1, 1.0),
        (60, 8, (2, 5), 20, 1.3),  # as before, the bound is the size of the largest workload
    ],
)
def test_the_number_of_waves_is_near_the_fewest_possible(nodes, pods, replicas, together, at_most):
    ratios = []
    for seed in range(5):
        allowed = (max(replicas[0] // 4, 1),)
        fleet, rival = a_fleet(random.Random(seed), nodes=nodes, pods=pods, replicas=replicas, allowed=allowed)
        fleet = [
            WaveNode(name=n.name, zone=n.zone, created=n.created, budgets=n.budgets, workloads=n.workloads)
            for n in fleet
        ]
        limits = Limits(together=together)
        ratios.append(len(plan_waves(fleet, limits, rival)) / fewest(fleet, limits, rival))
    assert sum(ratios) / len(ratios) <= at_most, ratios


def test_work_grows_with_the_fleet_and_not_with_its_square():
    """1,000 nodes x 20 pods x 200 budgets: every pod asks the budgets that can select it, which are few."""

    class Counting(PodDisruptionBudget):
        asked = 0

        def selects(self, pod):
            Counting.asked += 1
            return super().selects(pod)

    budgets = [
        Counting(namespace="shop", name=f"b{n}", selector={"matchLabels": {"app": f"a{n}"}}, disruptions_allowed=2)
        for n in range(200)
    ]
    pods = [
        Pod(
            namespace="shop",
            name=f"p{n}",
            uid=f"p{n}",
            node=f"n{n % 1000:04}",
            phase="Running",
            labels={"app": f"a{n % 200}", "pod": str(n % 400)},
        )
        for n in range(20_000)
    ]
    nodes = joined(random.Random(1), 1000, pods, budgets, 3)
    assert Counting.asked <= 400
    waves = plan_waves(nodes, Limits(together=100), ClusterConstraints(allowed={one.key: 2 for one in budgets}))
    assert sum(map(len, waves)) == 1000
