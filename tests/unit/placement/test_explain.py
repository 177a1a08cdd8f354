"""The zone report. Source: Cast AI, "Understanding zone imbalances"."""

import random
from dataclasses import replace

from leeward.placement.explain import ZoneFacts, explain_zone, imbalance, large_nodes, typical_node, zone_facts
from leeward.placement.restrictions import only_zones
from leeward.placement.zones import judge_zones
from tests.fakes.builders import a_node
from tests.unit.placement.builders import a_scene, a_subnet

A, B = a_subnet("subnet-a", zone="us-east-1a"), a_subnet("subnet-b", zone="us-east-1b", free=3)
ZONES = ("us-east-1a", "us-east-1b")


def node(name, zone, cores):
    return replace(a_node(name), name=name, labels={"topology.kubernetes.io/zone": zone}, cpu=cores * 1000)


def test_facts_are_nodes_and_pods_that_only_one_zone_would_do_for():
    nodes = [node("n1", "us-east-1a", 4), node("n2", "us-east-1b", 2), node("lost", "us-east-1z", 8)]
    bound = [only_zones("volume pv-1", ["us-east-1b"])]
    either = [only_zones("volume pv-2", ZONES)]
    facts = zone_facts(ZONES, nodes, {"shop/b": bound, "shop/a": bound, "shop/c": either, "shop/d": []})
    assert facts["us-east-1a"] == ZoneFacts(zone="us-east-1a", nodes={"n1": 4000})
    assert facts["us-east-1b"] == ZoneFacts(zone="us-east-1b", nodes={"n2": 2000}, bound=("shop/a", "shop/b"))


def test_a_zone_is_reported_with_its_large_nodes_and_bound_pods():
    facts = ZoneFacts(zone="us-east-1a", nodes={"n1": 2000, "big": 16000, "half": 3500}, bound=("shop/db-0",))
    assert explain_zone(facts, 2000) == (
        "3 nodes with 21.5 cores, large: big with 16 cores (a typical node has 2 cores), 1 pod is bound here by volumes"
    )


def test_many_large_nodes_are_counted():
    facts = ZoneFacts(zone="us-east-1a", nodes={f"n{number}": 8000 for number in range(5)})
    assert "large: n0 with 8 cores, n1 with 8 cores, n2 with 8 cores and 2 more" in explain_zone(facts, 2000)


def test_a_node_is_large_from_twice_the_typical_node_on():
    facts = ZoneFacts(zone="us-east-1a", nodes={"twice": 4000, "less": 3999})
    assert large_nodes(facts, 2000) == ["twice"]
    assert large_nodes(facts, 0) == []  # no node reports its cores: none can be called large


def test_the_typical_node_is_the_median_one():
    facts = [ZoneFacts(zone="a", nodes={"n1": 2000, "n2": 2000}), ZoneFacts(zone="b", nodes={"n3": 64000})]
    assert typical_node(facts) == 2000
    assert typical_node([]) == 0


def test_an_imbalance_is_explained_with_numbers():
    nodes = [node("big", "us-east-1a", 16), *(node(f"n{number}", "us-east-1b", 2) for number in range(2))]
    facts = zone_facts(ZONES, nodes, {"shop/db-0": [only_zones("volume pv-1", ["us-east-1a"])]})
    verdicts = judge_zones(a_scene(A, B, cores={"us-east-1a": 16, "us-east-1b": 4}), random.Random(0))
    assert imbalance(verdicts, facts) == (
        "us-east-1a holds 16 cores of 20 cores (80 %; an even share is 50 %), us-east-1b 4 cores.",
        "us-east-1a: 1 large node holds 16 cores, so few nodes can be many cores.",
        "us-east-1a: volumes bind 1 pod, and what is packed beside them, to it.",
        "us-east-1b: left out for lack of addresses: subnet-b has 3 free, a node with 8 pods takes 12 IPs.",
    )


def test_equal_zones_need_no_explanation():
    verdicts = judge_zones(a_scene(A, B, cores={"us-east-1a": 4, "us-east-1b": 4}), random.Random(0))
    assert imbalance(verdicts, zone_facts(ZONES, [], {})) == ()
