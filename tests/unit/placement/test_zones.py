"""The order of zones. Source: Cast AI, "How zone allocation works"."""

import random
from dataclasses import replace

import pytest

from leeward.model.node import Taint
from leeward.placement.restrictions import only_zones
from leeward.placement.scene import closed_zones, cores_by_zone, zone_of
from leeward.placement.verdict import ZoneStanding
from leeward.placement.zones import judge_zones, zone_order
from tests.fakes.builders import a_node
from tests.unit.placement.builders import OFF, ON, a_demand, a_scene, a_subnet

A, B, C = (a_subnet(f"subnet-{letter}", zone=f"us-east-1{letter}") for letter in "abc")


def judged(scene, seed=0):
    return {verdict.zone: verdict for verdict in judge_zones(scene, random.Random(seed))}


def test_the_zone_with_the_fewest_allocated_cores_comes_first():
    scene = a_scene(A, B, C, cores={"us-east-1a": 8, "us-east-1b": 2, "us-east-1c": 4})
    found = judge_zones(scene, random.Random(0))
    assert [verdict.zone for verdict in found] == ["us-east-1b", "us-east-1c", "us-east-1a"]
    assert [verdict.standing for verdict in found] == [ZoneStanding.NEXT, ZoneStanding.USABLE, ZoneStanding.USABLE]
    assert "fewest cores allocated (2 cores; us-east-1c 4 cores and us-east-1a 8 cores)" in found[0].why


def test_a_zone_without_nodes_has_no_cores_and_comes_first():
    assert judged(a_scene(A, B, cores={"us-east-1a": 1}))["us-east-1b"].standing is ZoneStanding.NEXT


def test_equal_zones_are_drawn_by_lot_and_the_seed_decides():
    scene = a_scene(A, B, C)
    firsts = {judge_zones(scene, random.Random(seed))[0].zone for seed in range(30)}
    assert firsts == {"us-east-1a", "us-east-1b", "us-east-1c"}
    found = judge_zones(scene, random.Random(7))
    assert found == judge_zones(scene, random.Random(7))
    others = " and ".join(sorted({"us-east-1a", "us-east-1b", "us-east-1c"} - {found[0].zone}))
    assert f"0 cores allocated, as in {others}: chosen at random" in found[0].why


def test_the_order_of_zones_does_not_depend_on_how_they_come():
    zones = ["c", "a", "d", "b"]
    expected = zone_order(zones, {"d": 1}, random.Random(3))
    assert zone_order(reversed(zones), {"d": 1}, random.Random(3)) == expected
    assert expected[-1] == "d"


def test_a_zone_whose_subnets_cannot_hold_the_pods_is_dropped_and_the_next_is_tried():
    full = replace(A, free_ips=11)
    found = judged(a_scene(full, B, cores={"us-east-1b": 64}))
    assert found["us-east-1a"].standing is ZoneStanding.NO_IPS
    assert found["us-east-1a"].why == "subnet-a has 11 free, a node with 8 pods takes 12 IPs"
    assert found["us-east-1b"].standing is ZoneStanding.NEXT
    assert "the only zone left, 64 cores allocated; us-east-1a dropped" in found["us-east-1b"].why


def test_one_subnet_has_to_hold_a_node_several_halves_do_not():
    halves = [a_subnet("subnet-1", free=11), a_subnet("subnet-2", free=9)]
    found = judged(a_scene(*halves))["us-east-1a"]
    assert (found.standing, found.free_ips) == (ZoneStanding.NO_IPS, 20)
    assert "the freest of 2 subnets, subnet-1, has 11 free" in found.why


def test_addresses_promised_to_launches_are_gone():
    scene = a_scene(replace(A, free_ips=23), promised={"subnet-a": 12})
    found = judged(scene)["us-east-1a"]
    assert (found.standing, found.free_ips) == (ZoneStanding.NO_IPS, 11)
    assert "(12 promised to launches)" in found.why


def test_without_accounting_a_subnet_only_has_to_hold_the_instance():
    demand = a_demand(ips=1, accounting=OFF)
    found = judged(a_scene(replace(A, free_ips=1), replace(B, free_ips=0), demand=demand))
    assert found["us-east-1a"].usable
    assert "pods are not counted: ENABLE_IPv6 is on" in found["us-east-1a"].why
    assert found["us-east-1b"].standing is ZoneStanding.NO_IPS


def test_a_zone_that_is_not_allowed_says_what_forbids_it():
    found = judged(a_scene(A, B, restrictions=(only_zones("volume pv-1 of pod shop/db-0", ["us-east-1b"]),)))
    assert found["us-east-1a"].standing is ZoneStanding.NOT_ALLOWED
    assert found["us-east-1a"].why == "not allowed by volume pv-1 of pod shop/db-0"
    assert found["us-east-1b"].standing is ZoneStanding.NEXT


def test_a_subnet_in_which_the_cni_puts_no_pod_is_not_used():
    shut = replace(ON, shut=frozenset({"subnet-a"}))
    found = judged(a_scene(A, B, demand=a_demand(accounting=shut)))
    assert (found["us-east-1a"].standing, found["us-east-1b"].standing) == (ZoneStanding.NOT_ALLOWED, ZoneStanding.NEXT)
    assert (
        found["us-east-1a"].why == "not allowed by kubernetes.io/role/cni=0 of subnet-a: the VPC CNI puts no pod there"
    )


def test_a_zone_with_nodes_but_no_subnet_is_reported():
    found = judged(a_scene(A, cores={"us-east-1d": 4}, asked_zones=("us-east-1e",)))
    assert found["us-east-1d"].standing is found["us-east-1e"].standing is ZoneStanding.NO_SUBNET


def test_cores_are_the_capacity_of_all_nodes():
    cordoned = replace(a_node("i-1"), cpu=4000, unschedulable=True)
    unknown = a_node("i-2")  # says no capacity; an m5.large
    assert cores_by_zone([cordoned, unknown], {"m5.large": 2000}) == {"us-east-1a": 6000}


@pytest.mark.parametrize(
    ("labels", "provider", "zone"),
    [
        ({"topology.kubernetes.io/zone": "z1"}, "aws:///z2/i-1", "z1"),
        ({"failure-domain.beta.kubernetes.io/zone": "z1"}, "", "z1"),
        ({}, "aws:///z2/i-1", "z2"),
        ({}, "", ""),
    ],
)
def test_the_zone_of_a_node_is_its_labels_or_its_provider_ids(labels, provider, zone):
    assert zone_of(replace(a_node(), labels=labels, provider_id=provider)) == zone


def test_a_zone_whose_nodes_take_no_pods_is_the_last_choice_although_it_has_the_fewest_cores():
    scene = a_scene(A, B, cores={"us-east-1a": 64}, closed=frozenset({"us-east-1b"}))
    found = judge_zones(scene, random.Random(0))
    assert [verdict.zone for verdict in found] == ["us-east-1a", "us-east-1b"]
    assert found[0].why.startswith("the only zone left whose nodes take pods, 64 cores allocated; ")
    assert found[1].why.endswith("the last choice, because its nodes are all cordoned by others or NotReady")


def test_a_closed_zone_is_taken_where_no_other_has_room():
    full = replace(A, free_ips=0)
    assert judged(a_scene(full, B, closed=frozenset({"us-east-1b"})))["us-east-1b"].standing is ZoneStanding.NEXT


def in_zone(letter, **fields):
    return replace(a_node(f"i-0{letter}"), labels={"topology.kubernetes.io/zone": f"us-east-1{letter}"}, **fields)


@pytest.mark.parametrize(
    ("fields", "is_closed"),
    [
        ({"ready": False}, True),
        ({"unschedulable": True}, True),
        ({"unschedulable": True, "annotations": {"leeward.dev/cordoned-for": "web"}}, False),
        ({"unschedulable": True, "taints": (Taint(key="leeward.dev/disrupted", effect="NoSchedule"),)}, False),
        ({}, False),
    ],
)
def test_a_zone_is_closed_where_others_have_cordoned_its_nodes_or_they_are_not_ready(fields, is_closed):
    nodes = [in_zone("a"), in_zone("b", **fields), in_zone("b", ready=False)]
    assert closed_zones([in_zone("a"), in_zone("b", **fields)]) == ({"us-east-1b"} if is_closed else set())
    assert closed_zones([*nodes, in_zone("b")]) == set()


def test_where_every_zone_is_closed_none_is_the_last_choice():
    found = judged(a_scene(A, B, cores={"us-east-1a": 8}, closed=frozenset({"us-east-1a", "us-east-1b"})))
    assert found["us-east-1b"].standing is ZoneStanding.NEXT
    assert "last choice" not in found["us-east-1b"].why
