"""The choice of subnets. Source: Cast AI, "Subnet selection" and "Available subnets detection"."""

import random
from dataclasses import replace

from leeward.placement.restrictions import only_subnets
from leeward.placement.zones import place
from tests.unit.placement.builders import OFF, a_demand, a_scene, a_subnet

A1, A2 = a_subnet("subnet-a1", free=50), a_subnet("subnet-a2", free=90)
B1 = a_subnet("subnet-b1", zone="us-east-1b", free=40)


def placed(scene, count=1, seed=0):
    return place(scene, count, random.Random(seed))


def subnets(placement):
    return [choice.subnet for choice in placement.choices]


def test_the_subnet_with_the_most_free_addresses_is_taken():
    found = placed(a_scene(A1, A2))
    assert subnets(found) == ["subnet-a2"]
    assert "subnet-a2 has the most free of 2 subnets, 90 IPs" in found.sentence


def test_equal_subnets_are_drawn_by_lot_and_the_seed_decides():
    scene = a_scene(A1, replace(A2, free_ips=50))
    assert {subnets(placed(scene, seed=seed))[0] for seed in range(20)} == {"subnet-a1", "subnet-a2"}
    assert placed(scene, seed=5) == placed(scene, seed=5)


def test_without_accounting_any_subnet_with_a_free_address_is_drawn():
    empty = a_subnet("subnet-a3", free=0)
    scene = a_scene(A1, A2, empty, demand=a_demand(ips=1, accounting=OFF))
    found = [placed(scene, seed=seed) for seed in range(30)]
    assert {subnets(one)[0] for one in found} == {"subnet-a1", "subnet-a2"}
    assert "chosen at random among 2 subnets" in found[0].sentence


def test_each_node_takes_its_addresses_before_the_next_is_placed():
    found = placed(a_scene(a_subnet("subnet-a1", free=30), a_subnet("subnet-a2", free=25)), count=5)
    assert subnets(found) == ["subnet-a1", "subnet-a2", "subnet-a1", "subnet-a2"]
    assert [choice.free_ips for choice in found.choices] == [30, 25, 18, 13]
    assert not found.complete
    assert found.sentence.startswith("there is no subnet with enough available IP addresses for 1 of 5 nodes")


def test_each_node_takes_its_cores_before_the_next_is_placed():
    found = placed(a_scene(A1, B1, cores={"us-east-1a": 3}), count=3)
    assert [choice.zone for choice in found.choices] == ["us-east-1b", "us-east-1b", "us-east-1a"]


def test_promised_addresses_are_not_given_twice():
    assert subnets(placed(a_scene(A1, A2, promised={"subnet-a2": 45}))) == ["subnet-a1"]


def test_a_restriction_keeps_a_node_to_its_subnets():
    scene = a_scene(A1, A2, restrictions=(only_subnets("the node selector of pod shop/db-0", ["subnet-a1"]),))
    assert subnets(placed(scene)) == ["subnet-a1"]


def test_with_every_subnet_full_placement_is_refused_with_zones_and_numbers():
    scene = a_scene(replace(A1, free_ips=3), replace(B1, free_ips=5), cores={"us-east-1b": 9})
    found = placed(scene)
    assert found.choices == ()
    assert found.sentence == (
        "there is no subnet with enough available IP addresses (us-east-1a: subnet-a1 has 3 free, a node with 8 pods "
        "takes 12 IPs; us-east-1b: subnet-b1 has 5 free, a node with 8 pods takes 12 IPs)"
    )


def test_a_refusal_that_is_not_about_addresses_does_not_blame_them():
    scene = a_scene(A1, restrictions=(only_subnets("volume pv-1 of pod shop/db-0", []),))
    assert placed(scene).sentence.startswith("there is no subnet where the node may land (us-east-1a: not allowed by")
    assert placed(a_scene()).sentence == "there is no subnet where the node may land (no zone is known)"
