"""What holds of every plan, on generated fleets."""

import os
import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.budgets.usage import all_allowances
from leeward.cluster.facets import Known
from leeward.disruption.command import MethodName
from leeward.disruption.methods import ORDER
from leeward.disruption.methods.consolidation import Consolidation, SingleNodeConsolidation
from leeward.disruption.methods.multi_node_consolidation import multi_node_proposals
from leeward.disruption.plan import plan_disruption, validate
from leeward.disruption.planning_state import PlanningState, on_free_capacity
from leeward.disruption.savings import threshold
from leeward.disruption.targets import targets
from leeward.model.launch import LaunchSettings
from leeward.model.quantity import amounts
from leeward.policy.document import DisruptionReason
from tests.unit.disruption.fleet import ROOM, ZONES, a_budget, a_fleet, a_policy, rules

EXAMPLES = int(os.environ.get("EXAMPLES", "60"))
REASONS = dict(
    zip(
        (one.name for one in ORDER),
        (DisruptionReason.EXPIRED, DisruptionReason.DRIFTED, DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED),
        strict=True,
    )
)


@st.composite
def fleets(draw):
    """Two policies, three groups, up to eight nodes and 20 pods, some bound to a zone, some guarded."""
    budgets = draw(st.lists(_budgets(), max_size=2))
    expires = draw(st.sampled_from([None, timedelta(days=20)]))
    savings = draw(st.sampled_from([0.0, 0.01, 0.05]))
    policy = a_policy(
        "web", "web", "batch", disruption=rules(budgets=tuple(budgets), expire_after=expires, savings_per_hour=savings)
    )
    fleet = a_fleet(policy, a_policy("spot", "spot", disruption=rules(savings_per_hour=0.0)))
    image = LaunchSettings(image=draw(st.sampled_from(["", "ami-1", "ami-2"])))
    types = st.lists(st.sampled_from(sorted(ROOM)), min_size=1, max_size=2, unique=True)
    for name, spot in (("web", False), ("batch", False), ("spot", True)):
        minimum, zones = draw(st.integers(0, 2)), ZONES[: draw(st.integers(1, 3))]
        fleet.group(name, *draw(types), spot=spot, minimum=minimum, zones=zones, launch=image)
    for number in range(draw(st.integers(1, 8))):
        group = draw(st.sampled_from(["web", "batch", "spot"]))
        created = draw(st.sampled_from(["2026-03-01T00:00:00Z", "2026-04-30T00:00:00Z"]))
        zone = draw(st.sampled_from(fleet.groups[group]["zones"]))
        kind = draw(st.sampled_from(sorted(ROOM)))
        fleet.node(f"n{number}", group=group, type=kind, zone=zone, created=created, instance={"image": "ami-1"})
    _add_pods(draw, fleet)
    return fleet


def _budgets():
    zones = st.sampled_from([None, *ZONES])
    return st.builds(a_budget, st.integers(0, 4), zone=zones) | st.builds(
        a_budget, st.integers(0, 100), percent=st.just(True)
    )


def _add_pods(draw, fleet):
    left = {raw["metadata"]["name"]: amounts(raw["status"]["allocatable"], down=True)["cpu"] for raw in fleet.nodes}
    for number in range(draw(st.integers(0, 20))):
        node = draw(st.sampled_from(sorted(left)))
        cpu = draw(st.sampled_from([50, 250, 500, 900]))
        if cpu > left[node]:
            continue
        left[node] -= cpu
        zone = next(raw for raw in fleet.nodes if raw["metadata"]["name"] == node)["metadata"]["labels"]
        bound = {"nodeSelector": {"topology.kubernetes.io/zone": zone["topology.kubernetes.io/zone"]}}
        rest = bound if draw(st.booleans()) else {}
        fleet.pod(f"p{number}", node, cpu=f"{cpu}m", memory="64Mi", labels={"app": f"a{number % 4}"}, **rest)
    if draw(st.booleans()):
        fleet.pdb("guard", draw(st.integers(0, 1)), app="a0")


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets(), only=st.sampled_from([None, *REASONS]))
def test_every_pod_of_a_removed_node_has_a_place_and_no_node_is_overfull(fleet, only):
    snapshot = fleet.snapshot()
    plan = plan_disruption(snapshot, only=only)
    removed = {name for command in plan.commands for name in command.nodes}
    where = {pod.key: pod.node for pod in snapshot.pods}
    new_rooms = {}
    for number, command in enumerate(plan.commands):
        groups = [one.group for one in command.replacements]
        for pod, node in command.placements.items():
            where[pod] = node if snapshot.node(node) else f"{number}/{node}"
            if not snapshot.node(node):
                new_rooms[f"{number}/{node}"] = _smallest(snapshot, groups)
    used = Counter()
    for spec in snapshot.pod_specs:
        assert where[spec.key] not in removed, f"{spec.key} stays behind"
        used[where[spec.key]] += spec.needs.asked("cpu")
    rooms = {spec.name: spec.allocatable["cpu"] for spec in snapshot.node_specs} | new_rooms
    assert all(used[node] <= rooms[node] for node in used if "/" in node or node not in removed)
    _bound_pods_stay_in_their_zone(fleet, snapshot, plan)


def _smallest(snapshot, groups):
    """Of every type that any of the groups may launch."""
    return min(node.allocatable["cpu"] for group in groups for node in snapshot.launchables[group].expected.values())


def _bound_pods_stay_in_their_zone(fleet, snapshot, plan):
    wanted = {f"shop/{raw['metadata']['name']}": raw["spec"].get("nodeSelector") for raw in fleet.pods}
    for command in plan.commands:
        zones = [set(one.zones) for one in command.replacements]
        for pod, node in command.placements.items():
            if wanted[pod]:
                (zone,) = wanted[pod].values()
                there = snapshot.node(node)
                assert snapshot.zone_of(there) == zone if there else any(zone in one for one in zones)


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets(), only=st.sampled_from([None, *REASONS]))
def test_no_budget_is_exceeded_and_no_group_falls_below_its_minimum(fleet, only):
    snapshot = fleet.snapshot()
    plan = plan_disruption(snapshot, only=only)
    going = [snapshot.node(name) for command in plan.commands for name in command.nodes]
    assert len({node.name for node in going}) == len(going)
    for one in all_allowances(snapshot) if plan.commands else ():
        if one.reason is REASONS[plan.method] and one.allowed is not None:
            mine = [node for node in going if snapshot.policy_of_node(node).name == one.policy]
            assert sum(one.zone in {None, snapshot.zone_of(node)} for node in mine) <= one.allowed
    sizes = Counter({name: group.desired for name, group in snapshot.groups.items()})
    sizes.subtract(snapshot.group_of(node).name for node in going)
    sizes.update(new.group for command in plan.commands for new in command.replacements)
    touched = {snapshot.group_of(node).name for node in going}
    for name in touched:
        group = snapshot.groups[name]
        assert sizes[name] >= min(group.minimum, group.desired)


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets(), seed=st.integers(0, 1000))
def test_the_order_of_the_input_makes_no_difference(fleet, seed):
    snapshot, chance = fleet.snapshot(), random.Random(seed)

    def mixed(things):
        return tuple(chance.sample(things, len(things)))

    other = replace(
        snapshot,
        node_list=Known(mixed(snapshot.nodes)),
        pods=mixed(snapshot.pods),
        budgets=mixed(snapshot.budgets),
        node_specs=mixed(snapshot.node_specs),
        pod_specs=mixed(snapshot.pod_specs),
        groups=dict(mixed(tuple(snapshot.groups.items()))),
        launchables=dict(mixed(tuple(snapshot.launchables.items()))),
    )
    assert plan_disruption(other) == plan_disruption(snapshot)


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets())
def test_consolidation_never_saves_less_than_the_threshold(fleet):
    snapshot = fleet.snapshot()
    found = PlanningState(snapshot)
    for command in plan_disruption(snapshot, only=MethodName.CONSOLIDATION).commands:
        nodes = [found.candidates[name] for name in command.nodes]
        assert command.savings >= threshold(nodes) >= 0
        most_expensive = sum(
            max(
                fleet.prices.on_demand[kind] if one.capacity == "on-demand" else fleet.prices.spot[kind][zone]
                for kind in one.types
                for zone in one.zones
            )
            for one in command.replacements
        )
        assert command.savings == pytest.approx(sum(node.price for node in nodes) - most_expensive, abs=1e-6)


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets(), only=st.sampled_from([None, *REASONS]))
def test_no_command_of_any_method_costs_money_that_it_calls_savings(fleet, only):
    for command in plan_disruption(fleet.snapshot(), only=only).commands:
        assert command.savings is None or command.savings >= 0


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets())
def test_the_search_for_several_nodes_saves_at_least_what_the_longest_prefix_saves(fleet):
    """Karpenter's own search, all prefixes tried instead of a binary search: by deletion alone. What is found may still
    give way to what saves more in the end.
    """
    snapshot = fleet.snapshot()
    found, method = PlanningState(snapshot), Consolidation()
    ordered = sorted(
        (one for one in found.candidates.values() if not method.reason_to_keep(found, one)), key=lambda one: one.rank
    )
    spending, prefix, best = found.usage.copy(), [], 0.0
    for candidate in ordered:
        if spending.reason_to_keep(candidate, DisruptionReason.UNDERUTILIZED):
            continue
        spending.take(candidate)
        prefix.append(candidate)
        possible = found.usage.may_shrink(prefix) and not on_free_capacity(found, prefix).why
        saved = sum(one.price for one in prefix)
        if len(prefix) > 1 and possible and saved >= threshold(prefix):
            best = max(best, saved)
    ready = [one for one in ordered if not found.usage.reason_to_keep(one, DisruptionReason.UNDERUTILIZED)]
    reconcile = SingleNodeConsolidation(found, targets(snapshot, priced=True))
    sets = multi_node_proposals(found, ready, reconcile.deletions(ready), reconcile.targets)
    assert (sets[0].worth[0] if sets else 0.0) >= best - 1e-6


@settings(max_examples=EXAMPLES, deadline=None)
@given(fleet=fleets())
def test_a_plan_still_holds_on_the_snapshot_that_it_was_made_from(fleet):
    snapshot = fleet.snapshot()
    plan = plan_disruption(snapshot)
    again = validate(snapshot, plan.method, plan.commands)
    assert [command.nodes for command in again.commands] == [command.nodes for command in plan.commands]
