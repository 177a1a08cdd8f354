"""Over random facts: nothing is planned where it lacks addresses, and a plan depends on nothing but the facts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from leeward.model.facts import ClusterFacts, FactKind
from leeward.model.pod import Pod
from leeward.placement.replacement import LeavingInstance, PlacementFacts, plan_launch, replacement_scene
from leeward.placement.scene import SeededChance
from tests.fakes.builders import a_group, a_subnet, an_instance, shifted
from tests.fakes.network import M5_LARGE

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SETTINGS = ({}, {"WARM_IP_TARGET": "3"}, {"WARM_ENI_TARGET": "0"}, {"MAX_ENI": "1"}, {"ENABLE_IPv6": "true"})


@st.composite
def situations(draw):
    """A node that leaves, its group's subnets, what is known of the rest, and members that have just been launched."""
    count = draw(st.integers(1, 6))
    subnets = tuple(
        a_subnet(f"subnet-{n}", zone=draw(st.sampled_from(ZONES)), free=draw(st.integers(0, 70))) for n in range(count)
    )
    newcomers = tuple(
        replace(
            an_instance(f"i-0new{n}"),
            subnet=draw(st.sampled_from(subnets)).id,
            zone=draw(st.sampled_from(ZONES)),
            ips=draw(st.integers(0, 40)),
            launched=NOW + timedelta(minutes=draw(st.integers(-10, 5))),
        )
        for n in range(draw(st.integers(0, 4)))
    )
    kinds = draw(st.sets(st.sampled_from([FactKind.NODES, FactKind.CNI, FactKind.INSTANCE_TYPES])))
    facts = ClusterFacts(
        synced=dict.fromkeys(kinds, NOW),
        types={"m5.large": M5_LARGE} if FactKind.INSTANCE_TYPES in kinds else {},
        cores={zone: draw(st.integers(0, 9)) * 1000 for zone in ZONES} if FactKind.NODES in kinds else {},
        closed=draw(st.sets(st.sampled_from(ZONES)).map(frozenset)) if FactKind.NODES in kinds else frozenset(),
        cni=draw(st.sampled_from(SETTINGS)) if FactKind.CNI in kinds else None,
    )
    pods = tuple(
        Pod(namespace="shop", name=f"p-{n}", uid=f"{n}", node="n", phase="Running", host_network=draw(st.booleans()))
        for n in range(draw(st.integers(0, 20)))
    )
    leaving = LeavingInstance(
        instance="i-0abc",
        zone=draw(st.sampled_from(ZONES)),
        subnet=subnets[0].id,
        type="m5.large",
        pods=draw(st.sampled_from([pods, None])),
    )
    group = replace(a_group("web-a", "i-0abc"), subnets=tuple(subnet.id for subnet in subnets))
    return group, leaving, PlacementFacts(facts=facts, subnets=subnets, newcomers=newcomers)


@given(situations())
def test_no_option_lacks_the_addresses_that_it_needs(found):
    group, leaving, known = found
    scene = replacement_scene(group, leaving, known)
    free = {subnet.id: scene.free_ips(subnet) for subnet in known.subnets}
    for option in plan_launch(group, leaving, known, SeededChance("seed")).options:
        assert free[option.subnet] >= option.ips == scene.demand.ips >= 1


@given(situations())
def test_a_zone_is_offered_once_and_none_with_room_is_forgotten(found):
    group, leaving, known = found
    scene = replacement_scene(group, leaving, known)
    plan = plan_launch(group, leaving, known, SeededChance("seed"))
    zones = [option.zone for option in plan.options]
    roomy = {subnet.zone for subnet in known.subnets if scene.free_ips(subnet) >= scene.demand.ips}
    assert len(zones) == len(set(zones))
    assert set(zones) == roomy
    assert bool(plan.nowhere) is (not zones)


@given(situations(), st.sets(st.sampled_from(ZONES)))
def test_no_option_is_in_a_zone_with_a_zonal_shift_and_no_other_zone_is_lost(found, zones):
    group, leaving, known = found
    before = {option.zone for option in plan_launch(group, leaving, known, SeededChance("seed")).options}
    known = replace(known, facts=replace(known.facts, shifts=shifted(*zones)))
    plan = plan_launch(group, leaving, known, SeededChance("seed"))
    assert {option.zone for option in plan.options} == before - zones
    assert bool(plan.nowhere) is (not before - zones)


@given(situations(), st.integers(0, 99))
def test_the_plan_does_not_depend_on_the_order_of_what_is_known(found, seed):
    group, leaving, known = found
    mixed = list(known.subnets)
    Random(seed).shuffle(mixed)
    other = replace(known, subnets=tuple(mixed), newcomers=known.newcomers[::-1])
    assert plan_launch(group, leaving, other, SeededChance("x")) == plan_launch(
        group, leaving, known, SeededChance("x")
    )


@given(situations())
def test_zones_come_by_cores_without_those_of_the_node_that_leaves_and_closed_ones_last(found):
    group, leaving, known = found
    scene = replacement_scene(group, leaving, known)
    zones = [option.zone for option in plan_launch(group, leaving, known, SeededChance("x")).options]
    ranks = [(zone in known.facts.closed, scene.cores[zone]) for zone in zones]
    if FactKind.NODES in known.facts.synced:
        assert ranks == sorted(ranks)


@given(st.text(max_size=20), st.lists(st.integers(1, 7), max_size=20))
def test_the_same_seed_draws_the_same_lots_within_their_bounds(seed, stops):
    first, second = SeededChance(seed), SeededChance(seed)
    for stop in stops:
        drawn = first.randrange(stop)
        assert drawn == second.randrange(stop)
        assert 0 <= drawn < stop


def test_lots_of_many_instances_are_even():
    drawn = [SeededChance(f"i-{number:017x}").randrange(3) for number in range(3000)]
    assert all(900 < drawn.count(lot) < 1100 for lot in range(3))
