"""The two ways to place pods: gathered first; where that leaves pods over, as kube-scheduler would place them.

Sources: kube-scheduler's PrioritySort (priority, then age) and NodeResourcesFit's default score, LeastAllocated.
"""

from leeward.scheduling.packing import attempt, pack
from leeward.scheduling.world import LOOKED_AT
from tests.unit.scheduling.raw import (
    HOST,
    PREFERRED,
    ZONE,
    a_line,
    a_node,
    a_pod,
    a_template,
    a_term,
    a_world,
    near,
    on_nodes,
    packed,
    spread,
    went,
)


def aged(pod, minute):
    pod["metadata"]["creationTimestamp"] = f"2026-03-01T08:{minute:02}:00Z"
    return pod


def too_many(*, young_is_large=True):
    """Three pods of which a node of 4 cores takes one or two."""
    large = aged(a_pod("large", cpu="4"), 2 if young_is_large else 0)
    return [large, aged(a_pod("small", cpu="1"), 1), aged(a_pod("tiny", cpu="500m"), 3)]


def test_pods_are_gathered_while_all_find_a_place():
    pods = [a_pod("there", node="n2", cpu="2"), aged(a_pod("young", cpu="2"), 2), aged(a_pod("old", cpu="1"), 1)]
    assert went([a_node("n1"), a_node("n2")], pods) == {"young": "n2", "old": "n1"}


def test_the_oldest_are_placed_where_not_all_fit():
    assert went([a_node("n1", cpu="4")], too_many()) == {"small": "n1", "tiny": "n1"}
    assert went([a_node("n1", cpu="4")], too_many(young_is_large=False)) == {"large": "n1"}


def test_priority_comes_before_age():
    pods = [aged(a_pod("old", cpu="4"), 1), aged(a_pod("young", cpu="4", priority=10), 2)]
    assert went([a_node("n1", cpu="4")], pods) == {"young": "n1"}


def test_the_least_allocated_node_is_taken_where_not_all_fit():
    pods = [a_pod("there", node="n1", cpu="2"), aged(a_pod("p1", cpu="2"), 1)]
    pods += [aged(a_pod(f"full{i}", cpu="4"), 2 + i) for i in range(2)]
    assert went([a_node("n1"), a_node("n2")], pods) == {"p1": "n2"}


def test_by_age_names_decide_among_pods_of_one_moment():
    pods = [aged(a_pod(name, cpu="3"), 1) for name in ("b", "a")]
    assert went([a_node("n1", cpu="4")], pods) == {"a": "n1"}


def test_a_pod_that_fits_nowhere_from_the_start_changes_nothing_for_the_others():
    pods = [a_pod("there", node="n2", cpu="2"), a_pod("p1", cpu="2"), a_pod("giant", cpu="64")]
    assert went([a_node("n1"), a_node("n2")], pods) == {"p1": "n2"}


def test_all_or_nothing_finds_a_place_for_all_where_only_the_schedulers_way_has_one():
    """Gathered, the large pod takes the node that the small one is bound to; by age the small one is there first."""
    bound = aged(a_pod("bound", cpu="1", **on_nodes(a_line(HOST, "In", "n1"))), 1)
    pods = [a_pod("there", node="n1", cpu="1"), bound, aged(a_pod("large", cpu="3"), 2)]
    world = a_world([a_node("n1", cpu="4"), a_node("n2", cpu="4")], pods)
    result = attempt(world, pods=world.pending, whole=True)
    assert (dict(result.placements), result.complete) == ({"default/bound": "n1", "default/large": "n2"}, True)


def test_all_or_nothing_that_fails_in_both_ways_names_the_largest_pod_and_leaves_the_gathered_state():
    world = a_world([a_node("n1", cpu="4")], too_many())
    result = pack(world, world.pending, whole=True)
    assert [one.pod for one in result.unplaced] == ["default/small"]
    assert result.placements == {"default/large": "n1"}
    assert [pod.key for pod in world.pods_on("n1")] == ["default/large"]


def test_what_is_left_over_is_the_same_whatever_was_tried_before():
    world = a_world([a_node("n1", cpu="4")], too_many())
    template = a_template(cpu="4")
    first = attempt(world, pods=world.pending, templates=[template], at_most=0)
    attempt(world, pods=world.pending, templates=[template])
    assert attempt(world, pods=world.pending, templates=[template], at_most=0) == first


def test_with_too_few_new_nodes_the_oldest_pods_get_them():
    pods = [aged(a_pod("large", cpu="4"), 2), aged(a_pod("small", cpu="1"), 1)]
    result = packed([], pods, templates=[a_template(cpu="4")], at_most=1)
    assert [node.pods for node in result.new_nodes] == [("default/small",)]
    assert [one.pod for one in result.unplaced] == ["default/large"]


def test_new_nodes_of_a_try_that_did_not_win_are_there_again():
    """All-or-nothing fails in both ways; what the first had opened is what the result shows."""
    pods = [aged(a_pod(f"p{i}", cpu="4", **spread(ZONE, minDomains=3)), i) for i in range(3)]
    world = a_world([], pods)
    result = pack(world, world.pending, templates=[a_template(zones="ab")], whole=True)
    assert [node.zone for node in result.new_nodes] == ["a", "b"]
    assert sorted(node.name for node in world.nodes) == sorted(node.name for node in result.new_nodes)


def test_preferences_come_before_the_least_allocated_node():
    preference = {"weight": 1, "preference": {"matchExpressions": [a_line(HOST, "In", "n1")]}}
    fond = a_pod("fond", cpu="1", affinity={"nodeAffinity": {PREFERRED: [preference]}})
    pods = [a_pod("there", node="n1", cpu="2"), aged(fond, 0), *(aged(a_pod(f"f{i}", cpu="4"), 1 + i) for i in (0, 1))]
    assert went([a_node("n1"), a_node("n2")], pods)["fond"] == "n1"


def test_of_equally_allocated_nodes_the_name_decides():
    there = [a_pod("there1", node="n1", cpu="1"), a_pod("there2", node="n2", cpu="2", memory="1Gi")]
    pods = [aged(a_pod("p1", cpu="1", memory="0"), 1), aged(a_pod("p2", cpu="1"), 2)]
    pods += [aged(a_pod(f"full{i}", cpu="3"), 3) for i in range(2)]
    assert went([a_node("n1"), a_node("n2")], [*there, *pods]) == {"p1": "n1", "p2": "n1"}


def test_a_pod_that_follows_another_is_tried_the_schedulers_way_too():
    """Gathered, the leader goes where its follower has no room any more."""
    pods = [
        a_pod("there", node="n1", cpu="1"),
        a_pod("leader", app="db"),
        a_pod("f", cpu="3", **near(a_term(HOST, "db"))),
    ]
    assert went([a_node("n1"), a_node("n2")], pods) == {"leader": "n2", "f": "n2"}


def test_all_or_nothing_gives_up_at_a_gated_pod_whatever_else_it_asks_for():
    gated = a_pod("gated", cpu="2", schedulingGates=[{"name": "quota"}], **near(a_term(HOST, "db")))
    world = a_world([a_node("n1")], [gated, a_pod("homeless", cpu="1", nodeSelector={"disk": "tape"})])
    assert [one.pod for one in attempt(world, pods=world.pending, whole=True).unplaced] == ["default/gated"]


def test_of_very_many_nodes_only_some_are_compared():
    nodes = [a_node(f"n{at:03}", cpu="4") for at in range(LOOKED_AT + 5)]
    there = [a_pod(f"there{at:03}", node=f"n{at:03}", cpu="500m") for at in range(LOOKED_AT)]
    pods = [aged(a_pod("p1", cpu="1"), 1), *(aged(a_pod(f"f{at:03}", cpu="4"), 2) for at in range(6))]
    assert went(nodes, [*there, *pods])["p1"] == "n000"
