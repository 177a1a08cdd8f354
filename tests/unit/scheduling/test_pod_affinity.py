"""InterPodAffinity: required and preferred terms, the symmetry of anti-affinity, namespaces, matchLabelKeys."""

import pytest

from leeward.scheduling.packing import attempt
from leeward.scheduling.pods import PodReader
from leeward.scheduling.topology_counts import MOST_MOVED
from tests.unit.scheduling.raw import (
    HOST,
    PREFERRED,
    ZONE,
    a_line,
    a_node,
    a_pod,
    a_term,
    a_world,
    away,
    fit_error,
    near,
    went,
)

TWO_ZONES = [a_node("a1", zone="a"), a_node("b1", zone="b")]


def leaving(pod):
    pod["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    return pod


def test_a_pod_goes_to_the_domain_of_the_pods_it_wants_to_be_near():
    pods = [a_pod("db", app="db", node="b1"), a_pod("p1", **near(a_term(ZONE, "db")))]
    assert went(TWO_ZONES, pods) == {"p1": "b1"}


def test_without_such_pods_affinity_cannot_be_met():
    why = fit_error(TWO_ZONES, [a_pod(**near(a_term(ZONE, "db")))])
    assert why == "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."


def test_the_first_of_pods_that_want_to_be_near_each_other_may_go_anywhere():
    pods = [a_pod(name, cpu="2", **near(a_term(ZONE))) for name in ("p1", "p2")]
    assert went(TWO_ZONES, pods) == {"p1": "a1", "p2": "a1"}


def test_the_first_one_still_needs_the_label_of_the_topology():
    pod = a_pod(**near(a_term("rack")))
    assert "pod affinity rules" in fit_error(TWO_ZONES, [pod])
    assert went([*TWO_ZONES, a_node("racked", labels={"rack": "1"})], [pod]) == {"p1": "racked"}


def test_a_pod_that_waits_for_another_kind_is_tried_again_after_it():
    pods = [a_pod("big", cpu="2", **near(a_term(ZONE, "db"))), a_pod("small", app="db", cpu="1")]
    assert went(TWO_ZONES, pods) == {"small": "a1", "big": "a1"}


def test_a_pod_counts_for_affinity_only_if_it_meets_all_terms():
    terms = (a_term(ZONE, "db"), {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "gold"}}})
    half = [a_pod("db", app="db", node="a1"), a_pod("gold", app="x", node="a1", labels={"tier": "gold"})]
    whole = a_pod("both", app="db", node="b1", labels={"tier": "gold"})
    assert "pod affinity rules" in fit_error(TWO_ZONES, [*half, a_pod("p1", **near(*terms))])
    assert went(TWO_ZONES, [*half, whole, a_pod("p1", **near(*terms))]) == {"p1": "b1"}


def test_a_pod_that_is_being_deleted_still_counts_for_affinity():
    assert went(TWO_ZONES, [leaving(a_pod("db", app="db", node="b1")), a_pod("p1", **near(a_term(ZONE, "db")))])


def test_anti_affinity_keeps_pods_out_of_each_others_domain():
    pods = [a_pod(name, cpu="1", **away(a_term(HOST))) for name in ("p1", "p2", "p3")]
    assert went(TWO_ZONES, pods) == {"p1": "a1", "p2": "b1"}
    assert fit_error(TWO_ZONES, pods) == ("0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.")


def test_existing_pods_keep_others_away_though_these_would_not_mind():
    loner = a_pod("loner", app="db", node="a1", **away(a_term(ZONE, "web")))
    assert went(TWO_ZONES, [loner, a_pod("p1")]) == {"p1": "b1"}
    why = fit_error(TWO_ZONES[:1], [loner, a_pod("p1")])
    assert why == "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."


def test_a_pod_that_has_left_keeps_no_pod_away_any_more():
    nodes = [a_node("a1", labels={"pool": "x"}), a_node("a2"), a_node("b1", zone="b", cpu="2", labels={"pool": "x"})]
    loner = a_pod("loner", app="db", node="a1", cpu="2", nodeSelector={"pool": "x"}, **away(a_term(ZONE, "web")))
    world = a_world(nodes, [loner, a_pod("p1")])
    assert attempt(world, ["a1"], pods=world.pending).placements == {"default/loner": "b1", "default/p1": "a2"}
    assert attempt(world, pods=world.pending).placements == {"default/p1": "b1"}


def test_a_node_without_the_label_is_in_no_domain_to_be_kept_out_of():
    nodes = [a_node("racked", labels={"rack": "1"}), a_node("loose")]
    pods = [a_pod("there", node="racked"), a_pod("there2", node="loose"), a_pod("p1", **away(a_term("rack")))]
    assert went(nodes, pods) == {"p1": "loose"}


@pytest.mark.parametrize(
    ("more", "kept_away"),
    [
        ({}, False),
        ({"namespaces": ["shop"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "blue"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, True),
    ],
)
def test_a_term_is_about_the_pods_own_namespace_unless_it_names_others(more, kept_away):
    pods = [a_pod("there", namespace="shop", node="n1"), a_pod("p1", **away(a_term(HOST, **more)))]
    namespaces = {"shop": {"team": "blue"}, "default": {"team": "green"}}
    assert bool(went([a_node("n1")], pods, namespaces=namespaces)) is not kept_away


@pytest.mark.parametrize(
    ("rule", "label", "placed"),
    [
        (away, "team", False),
        (near, "team", False),
        (away, "kubernetes.io/metadata.name", False),
        (near, "kubernetes.io/metadata.name", True),
    ],
)
def test_where_no_namespace_was_read_labels_of_namespaces_are_judged_to_the_pods_disadvantage(rule, label, placed):
    """Anti-affinity then means every namespace, and affinity none; the name's label needs no reading."""
    chosen = {"namespaceSelector": {"matchLabels": {label: "shop"}}}
    pods = [a_pod("there", namespace="shop", node="n1"), a_pod("p1", **rule(a_term(HOST, **chosen)))]
    assert bool(went([a_node("n1")], pods)) is placed


def test_match_label_keys_narrow_a_term_to_pods_of_the_same_value():
    term = a_term(HOST, matchLabelKeys=["revision", "absent"])
    old = a_pod("old", node="n1", labels={"revision": "1"})
    assert went([a_node("n1")], [old, a_pod("p1", labels={"revision": "2"}, **away(term))]) == {"p1": "n1"}
    assert not went([a_node("n1")], [old, a_pod("p1", labels={"revision": "1"}, **away(term))])


def test_mismatch_label_keys_narrow_a_term_to_pods_of_another_value():
    term = a_term(HOST, mismatchLabelKeys=["tenant"])
    there = a_pod("there", node="n1", labels={"tenant": "x"})
    assert went([a_node("n1")], [there, a_pod("p1", labels={"tenant": "x"}, **away(term))]) == {"p1": "n1"}
    assert not went([a_node("n1")], [there, a_pod("p1", labels={"tenant": "y"}, **away(term))])


def test_a_term_without_a_selector_is_about_no_pod():
    assert went([a_node("n1")], [a_pod("there", node="n1"), a_pod("p1", **away({"topologyKey": HOST}))])


def preferring(kind, *terms):
    weighted = [{"weight": weight, "podAffinityTerm": term} for weight, term in terms]
    return {"affinity": {kind: {PREFERRED: weighted}}}


def test_preferred_anti_affinity_is_followed_while_it_can_be():
    pods = [a_pod(f"p{i}", **preferring("podAntiAffinity", (1, a_term(HOST)))) for i in range(3)]
    assert went(TWO_ZONES, pods) == {"p0": "a1", "p1": "b1", "p2": "a1"}


def test_preferred_affinity_is_followed_while_it_can_be():
    pods = [a_pod("db", app="db", node="b1", cpu="3"), a_pod("full", app="x", node="a1", cpu="3")]
    pods += [a_pod(f"p{i}", **preferring("podAffinity", (1, a_term(ZONE, "db")))) for i in range(2)]
    assert went(TWO_ZONES, pods) == {"p0": "b1", "p1": "a1"}


def test_staying_away_is_given_up_after_being_near():
    pod = a_pod("p1")
    pod["spec"]["affinity"] = {
        **preferring("podAntiAffinity", (1, a_term(HOST, "db")))["affinity"],
        **preferring("podAffinity", (100, a_term(HOST, "db")))["affinity"],
    }
    assert went(TWO_ZONES, [a_pod("db", app="db", node="a1"), pod]) == {"p1": "b1"}


def test_of_many_preferred_terms_the_eight_heaviest_are_followed():
    terms = [{"weight": weight, "podAffinityTerm": a_term(app=f"app-{weight}")} for weight in range(1, 33)]
    (pod,) = PodReader().read_all([a_pod(affinity={"podAffinity": {PREFERRED: terms}})])
    assert [term.weight for term in pod.needs.preferred_near] == [32, 31, 30, 29, 28, 27, 26, 25]


@pytest.mark.parametrize("line", [a_line("x", "DoesNotExist"), a_line("app", "In", "web")], ids=["wide", "by label"])
def test_a_placed_pod_moves_few_counters_however_many_terms_mean_it(line):
    """The others look up where such pods are when they are asked."""
    lines = ([line, a_line(f"y{number}", "DoesNotExist")] for number in range(32))
    terms = [{"topologyKey": HOST, "labelSelector": {"matchExpressions": list(both)}} for both in lines]
    asking = [a_pod(f"asking-{n}", app="x", labels={"x": "1"}, **near(terms[n])) for n in range(32)]
    world = a_world([a_node("n1"), a_node("n2")], [a_pod("meant", node="n2"), *asking])
    feasible = {pod.name: world.feasible(world.kind(pod), world.fleet.present) for pod in world.pending}
    assert set(feasible.values()) == {world.fleet.bits[world.fleet.numbers["n2"]]}
    assert all(len(profile.counted) <= MOST_MOVED for profile in world._kinds._profiles.values())
    with world.trial():
        world.remove("n2")
        assert {world.feasible(world.kind(pod), world.fleet.present) for pod in world.pending} == {0}
    assert {world.feasible(world.kind(pod), world.fleet.present) for pod in world.pending} == set(feasible.values())
