"""PodTopologySpread: skew, minDomains, the two policies, matchLabelKeys, both whenUnsatisfiable modes."""

from collections import Counter

import pytest

from tests.unit.scheduling.raw import HOST, ZONE, a_line, a_node, a_pod, a_taint, fit_error, on_nodes, spread, went

ABC = [a_node(f"{zone}1", zone=zone) for zone in "abc"]


def web(count, **more):
    return [a_pod(f"p{i}", cpu="500m", **more) for i in range(count)]


def per_node(nodes, pods, **more):
    return dict(Counter(went(nodes, pods, **more).values()))


def test_pods_are_spread_within_the_skew():
    assert per_node(ABC, web(6, **spread())) == {"a1": 2, "b1": 2, "c1": 2}


def test_a_larger_skew_lets_zones_fill_up_first():
    assert per_node(ABC, web(4, **spread(skew=2))) == {"a1": 2, "b1": 2}


def test_a_full_zone_holds_the_others_back():
    nodes = [*ABC[:2], a_node("c1", zone="c", cpu="0")]
    assert per_node(nodes, web(4, **spread())) == {"a1": 1, "b1": 1}
    assert fit_error(nodes, web(3, **spread())) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints."
    )


def test_a_node_without_the_label_is_distinguished():
    assert fit_error([a_node("n1")], web(1, **spread("rack"))) == (
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)."
    )


def test_fewer_domains_than_min_domains_make_the_minimum_zero():
    assert per_node(ABC[:2], web(4, **spread(minDomains=3))) == {"a1": 1, "b1": 1}
    assert per_node(ABC, web(6, **spread(minDomains=3))) == {"a1": 2, "b1": 2, "c1": 2}


def test_pods_of_other_labels_namespaces_and_those_being_deleted_do_not_count():
    leaving = a_pod("leaving", node="a1")
    leaving["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    there = [a_pod("other", app="db", node="a1"), a_pod("far", namespace="shop", node="a1"), leaving]
    assert per_node(ABC, [*there, *web(3, **spread())]) == {"a1": 1, "b1": 1, "c1": 1}


def test_a_pod_that_its_own_constraint_does_not_select_adds_nothing_to_the_skew():
    there = [a_pod("db", app="db", node="a1")]
    assert per_node(ABC[:2], [*there, *web(2, **spread(app="db"))]) == {"a1": 2}


def test_an_empty_selector_counts_no_pod():
    everything = spread()
    everything["topologySpreadConstraints"][0]["labelSelector"] = {}
    assert per_node(ABC, web(4, **everything)) == {"a1": 4}


def test_node_affinity_is_honoured_unless_the_constraint_ignores_it():
    only_ab = on_nodes(a_line(ZONE, "In", "a", "b"))
    assert per_node(ABC, web(4, **only_ab, **spread())) == {"a1": 2, "b1": 2}
    assert per_node(ABC, web(4, **only_ab, **spread(nodeAffinityPolicy="Ignore"))) == {"a1": 1, "b1": 1}


def test_taints_are_ignored_unless_the_constraint_honours_them():
    nodes = [*ABC[:2], a_node("c1", zone="c", taints=[a_taint()])]
    assert per_node(nodes, web(4, **spread())) == {"a1": 1, "b1": 1}
    assert per_node(nodes, web(4, **spread(nodeTaintsPolicy="Honor"))) == {"a1": 2, "b1": 2}


def test_a_cordoned_node_counts_as_a_domain_without_its_taint():
    nodes = [*ABC[:2], a_node("c1", zone="c", cordoned=True)]
    assert per_node(nodes, web(4, **spread(nodeTaintsPolicy="Honor"))) == {"a1": 1, "b1": 1}


def test_match_label_keys_spread_each_revision_by_itself():
    one = spread(matchLabelKeys=["revision"])
    old = [a_pod(f"old{i}", node="a1", cpu="100m", labels={"revision": "1"}) for i in range(5)]
    assert per_node(ABC, [*old, *web(3, labels={"revision": "2"}, **one)]) == {"a1": 1, "b1": 1, "c1": 1}


def both_of(one, other):
    key = "topologySpreadConstraints"
    return {key: one[key] + other[key]}


def test_a_node_counts_only_with_the_labels_of_all_hard_constraints():
    nodes = [a_node("a1", zone="a"), a_node("b1", zone="b", labels={"rack": "1"})]
    both = both_of(spread(), spread("rack", skew=5))
    assert per_node(nodes, web(3, **both)) == {"b1": 3}


def test_two_constraints_hold_at_once():
    nodes = [a_node(f"{zone}{i}", zone=zone) for zone in "ab" for i in (1, 2)]
    both = both_of(spread(), spread(HOST))
    assert per_node(nodes, web(4, **both)) == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}


@pytest.mark.parametrize("count", [3, 7])
def test_schedule_anyway_is_followed_while_it_can_be(count):
    nodes = [a_node("a1", zone="a"), a_node("b1", zone="b", cpu="1")]
    placed = per_node(nodes, web(count, **spread(hard=False)))
    assert placed["b1"] == min(2, count // 2)
    assert sum(placed.values()) == count
