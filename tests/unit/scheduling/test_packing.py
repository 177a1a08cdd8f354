"""Where pods go, what new nodes they need, and trying without keeping."""

from dataclasses import replace

import pytest

from leeward.errors import ObjectGoneError
from leeward.scheduling.nodes import TemplateOffering
from leeward.scheduling.packing import attempt, pack
from leeward.scheduling.pods import PodReader
from tests.unit.scheduling.raw import (
    HOST,
    ZONE,
    a_claim,
    a_daemon_set,
    a_node,
    a_pod,
    a_taint,
    a_template,
    a_term,
    a_volume,
    a_world,
    away,
    fit_error,
    packed,
    spread,
    went,
    with_claims,
)


def shape(packing):
    """Template, zone and number of pods of each new node."""
    return [(node.template, node.zone, len(node.pods)) for node in packing.new_nodes]


def test_pods_gather_on_the_most_allocated_node():
    pods = [a_pod("there", node="n2", cpu="2"), a_pod("p1")]
    assert went([a_node("n1"), a_node("n2")], pods) == {"p1": "n2"}


def test_higher_priority_then_larger_pods_are_placed_first():
    small, large = a_pod("small", cpu="1"), a_pod("large", cpu="4")
    assert went([a_node("n1", cpu="4")], [small, large]) == {"large": "n1"}
    assert went([a_node("n1", cpu="4")], [a_pod("small", cpu="1", priority=10), large]) == {"small": "n1"}


def test_a_removed_nodes_pods_find_fit_elsewhere_and_the_world_stays_as_it_was():
    nodes = [a_node("n1"), a_node("n2")]
    world = a_world(nodes, [a_pod("p1", node="n1"), a_pod("p2", node="n2")])
    assert attempt(world, ["n1"]).placements == {"default/p1": "n2"}
    assert [pod.key for pod in world.pods_on("n1")] == ["default/p1"]
    assert world.free("n2") == {"cpu": 3000, "memory": 7 * 1024**3, "pods": 9}


def test_several_nodes_can_be_removed_at_once():
    nodes = [a_node(name) for name in ("n1", "n2", "n3")]
    world = a_world(nodes, [a_pod(f"p{i}", node=f"n{i}", cpu="1500m") for i in (1, 2, 3)])
    assert attempt(world, ["n1"]).complete
    assert not attempt(world, ["n1", "n2"]).complete


def test_daemon_pods_static_pods_and_pods_that_are_leaving_end_with_their_node():
    static = a_pod("static", node="n1")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    leaving = a_pod("leaving", node="n1")
    leaving["metadata"]["deletionTimestamp"] = "2026-03-01T08:00:00Z"
    daemon = a_pod("agent-x", owner="DaemonSet", node="n1")
    world = a_world([a_node("n1"), a_node("n2")], [static, leaving, daemon, a_pod("p1", node="n1")])
    assert attempt(world, ["n1"]).placements == {"default/p1": "n2"}


def test_a_node_that_is_not_there_is_named():
    with pytest.raises(ObjectGoneError, match="node n9 is not there"):
        attempt(a_world([a_node("n1")], []), ["n9"])


def test_a_deleted_domain_no_longer_holds_the_skew_down():
    nodes = [a_node(f"{zone}1", zone=zone) for zone in "abc"]
    pods = [a_pod(f"p{zone}", node=f"{zone}1", **spread()) for zone in "abc"]
    world = a_world(nodes, pods)
    # without zone c its pod may join a or b; while c counted as empty it could join neither
    for zone, other in (("c", "a1"), ("a", "b1"), ("c", "a1")):
        assert attempt(world, [f"{zone}1"], deleted=True).placements == {f"default/p{zone}": other}


def test_a_new_node_is_opened_only_when_nothing_else_has_room():
    pods = [a_pod("p1", cpu="3"), a_pod("p2", cpu="3"), a_pod("p3")]
    result = packed([a_node("n1", cpu="4")], pods, templates=[a_template(cpu="4")])
    assert shape(result) == [("web", "a", 1)]
    assert result.placements == {"default/p1": "n1", "default/p2": "new-web-0-1", "default/p3": "n1"}


def test_no_more_new_nodes_than_allowed():
    pods = [a_pod(f"p{i}", cpu="4") for i in range(3)]
    result = packed([], pods, templates=[a_template(cpu="4")], at_most=1)
    assert shape(result) == [("web", "a", 1)]
    why = "0/1 nodes are available: 1 Insufficient cpu. No more than 1 new node is allowed."
    assert [(one.pod, one.why) for one in result.unplaced] == [("default/p1", why), ("default/p2", why)]


def test_no_more_new_nodes_of_a_template_than_its_group_can_get():
    pods = [a_pod(f"p{i}", cpu="4") for i in range(3)]
    templates = [a_template("cheap", price=0.1, max_nodes=1), a_template("expensive", price=0.2)]
    assert shape(packed([], pods, templates=templates)) == [
        ("cheap", "a", 1),
        ("expensive", "a", 1),
        ("expensive", "a", 1),
    ]


def test_the_cheapest_template_that_will_do_is_taken_whatever_their_order():
    templates = [a_template("large", cpu="8", price=0.4), a_template("small", cpu="2", price=0.1)]
    for order in (templates, templates[::-1]):
        result = packed([], [a_pod("p1", cpu="1"), a_pod("p2", cpu="6")], templates=order)
        assert shape(result) == [("large", "a", 2)]
        assert result.price == 0.4
    assert shape(packed([], [a_pod("p1", cpu="1")], templates=templates)) == [("small", "a", 1)]


def test_new_nodes_of_one_price_are_spread_over_the_zones():
    pods = [a_pod(f"p{i}", cpu="4") for i in range(4)]
    result = packed([], pods, templates=[a_template(zones="abc")])
    assert [node.zone for node in result.new_nodes] == ["a", "b", "c", "a"]


def test_a_cheaper_zone_is_worth_more_than_balance():
    offerings = (TemplateOffering(zone="a", price=0.2), TemplateOffering(zone="b", price=0.1))
    template = replace(a_template(), offerings=offerings)
    result = packed([], [a_pod(f"p{i}", cpu="4") for i in range(2)], templates=[template])
    assert [node.zone for node in result.new_nodes] == ["b", "b"]


def test_a_new_node_comes_up_where_the_volume_is():
    storage = {"claims": [a_claim(volume="pv-1")], "volumes": [a_volume(zone="b")]}
    result = packed([], [a_pod(**with_claims("data"))], templates=[a_template(zones="abc")], storage=storage)
    assert [node.zone for node in result.new_nodes] == ["b"]


def test_new_nodes_come_up_where_the_spread_wants_them():
    there = [a_pod(f"old{i}", node="a1", cpu="2") for i in range(2)]
    pods = [*there, *(a_pod(f"p{i}", cpu="4", **spread(minDomains=3)) for i in range(2))]
    result = packed([a_node("a1"), a_node("b0", zone="b", cpu="1")], pods, templates=[a_template(zones="abc")])
    assert sorted(node.zone for node in result.new_nodes) == ["b", "c"]


def test_each_new_node_is_a_host_of_its_own():
    pods = [a_pod(f"p{i}", **away(a_term(HOST))) for i in range(3)]
    assert shape(packed([], pods, templates=[a_template()])) == [("web", "a", 1)] * 3


def test_daemon_pods_take_their_room_on_new_nodes():
    pods = [a_pod(f"p{i}", cpu="1") for i in range(4)]
    result = packed([], pods, templates=[a_template(cpu="4")], daemons=[a_daemon_set(cpu="500m")])
    assert shape(result) == [("web", "a", 3), ("web", "a", 1)]


def test_a_daemon_set_takes_room_only_where_its_pods_would_run():
    pods = [a_pod(f"p{i}", cpu="1") for i in range(4)]
    elsewhere = a_daemon_set(cpu="500m", nodeSelector={"gpu": "yes"})
    assert shape(packed([], pods, templates=[a_template(cpu="4")], daemons=[elsewhere])) == [("web", "a", 4)]


def test_a_daemon_set_of_some_of_the_types_takes_its_room_on_the_node_that_stands_for_all():
    pods = [a_pod(f"p{i}", cpu="1") for i in range(4)]
    template = a_template(cpu="4")
    mixed = replace(template, node=replace(template.node, variants=((("size", "1"),), (("size", "2"),))))
    of_one = a_daemon_set(cpu="500m", nodeSelector={"size": "2"})
    assert shape(packed([], pods, templates=[mixed], daemons=[of_one])) == [("web", "a", 3), ("web", "a", 1)]
    of_none = a_daemon_set(cpu="500m", nodeSelector={"size": "3"})
    assert shape(packed([], pods, templates=[mixed], daemons=[of_none])) == [("web", "a", 4)]


def test_a_daemon_set_takes_room_where_not_all_labels_of_the_node_to_come_are_known():
    pods = [a_pod(f"p{i}", cpu="1") for i in range(4)]
    template = a_template(cpu="4", labels={"team": "red"})
    node = template.node
    unclear = replace(template, node=replace(node, open_labels=True))

    def nodes(**selects):
        daemon = a_daemon_set(cpu="500m", **selects)
        return [shape(packed([], pods, templates=[one], daemons=[daemon])) for one in (template, unclear)]

    alone, beside = [("web", "a", 4)], [("web", "a", 3), ("web", "a", 1)]
    assert nodes(nodeSelector={"life": "spot"}) == [alone, beside]
    assert nodes(nodeSelector={"life": "spot", "team": "red"}) == [alone, beside]
    assert nodes(nodeSelector={"life": "spot", "team": "blue"}) == [alone, alone]
    assert nodes(affinity=requires("life", "Exists")) == [alone, beside]
    assert nodes(affinity=requires("life", "DoesNotExist")) == [beside, beside]
    assert nodes(affinity=requires("team", "DoesNotExist")) == [alone, alone]


def requires(key, operator):
    term = {"matchExpressions": [{"key": key, "operator": operator}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def test_daemon_pods_tolerate_what_their_controller_adds():
    daemon = PodReader().daemon(a_daemon_set(hostNetwork=True))
    assert {(one.key, one.effect) for one in daemon.needs.tolerations} == {
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ("node.kubernetes.io/network-unavailable", "NoSchedule"),
    }


def test_the_reason_names_what_a_new_node_would_lack():
    templates = [a_template("small", cpu="1"), a_template("gpu", cpu="16", price=0.2, taints=[a_taint("gpu", "yes")])]
    assert fit_error([a_node("n1", cpu="1")], [a_pod(cpu="2")], templates=templates) == (
        "0/1 nodes are available: 1 Insufficient cpu. A new node of small in a: Insufficient cpu. "
        "A new node of gpu in a: node(s) had untolerated taint {gpu: yes}."
    )


def test_all_or_nothing_names_the_first_pod_without_a_place():
    world = a_world([a_node("n1", cpu="1")], [a_pod("p1", cpu="2"), a_pod("p2", cpu="1")])
    result = attempt(world, pods=world.pending, whole=True)
    assert [one.pod for one in result.unplaced] == ["default/p1"]


def test_the_same_try_gives_the_same_answer_whatever_was_tried_before():
    zones, expensive = a_template("web", zones="ab"), a_template("expensive", price=0.3)
    nodes, pods = [a_node("n1", cpu="2")], [a_pod(f"p{i}", node="n1", cpu="1") for i in range(2)]
    fresh = attempt(a_world(nodes, pods), ["n1"], templates=[zones, expensive])
    world = a_world(nodes, pods)
    attempt(world, ["n1"], templates=[expensive])
    attempt(world, templates=[zones], pods=[PodReader().read(a_pod("x", cpu="4", nodeSelector={ZONE: "b"}))])
    assert attempt(world, ["n1"], templates=[zones, expensive]) == fresh


def test_a_try_takes_as_many_steps_as_pods_it_moves_however_large_the_cluster():
    def steps(count):
        nodes = [a_node(f"n{at:03}", zone="abc"[at % 3]) for at in range(count)]
        pods = [a_pod(f"p{at:03}-{i}", node=f"n{at:03}", **spread(skew=5)) for at in range(count) for i in range(2)]
        world = a_world(nodes, pods)
        with world.trial():
            assert pack(world, world.remove("n000")).complete
            return world.checkpoint()

    assert steps(6) == steps(120) == 2 + 1 + 2  # two pods taken off, one node taken away, two pods placed


def test_what_is_packed_stays_until_it_is_rolled_back():
    world = a_world([a_node("n1")], [a_pod("p1", cpu="3"), a_pod("p2", cpu="3")])
    first, second = world.pending
    point = world.checkpoint()
    assert pack(world, [first]).complete
    assert not pack(world, [second]).complete
    world.rollback(point)
    assert pack(world, [second]).complete


def test_more_different_requests_than_have_masks_of_their_own_are_still_exact():
    pods = [a_pod(f"p{i:03}", cpu=f"{1000 + i}m", memory="1Mi") for i in range(300)]
    nodes = [a_node(f"n{i:03}", cpu=f"{1000 + i}m") for i in range(300)]
    assert went(nodes, pods) == {f"p{i:03}": f"n{i:03}" for i in range(300)}
    assert fit_error([a_node("n1", cpu="1998m")], [a_pod("p", cpu="1999m")]).endswith("1 Insufficient cpu.")


def test_the_nodes_that_lack_a_resource_are_counted_exactly_among_many_different_requests():
    pods = [a_pod(f"p{i:03}", cpu=f"{700 + i}m", memory="1Mi") for i in range(70)]
    nodes = [a_node("large", cpu="96", pods="100"), *(a_node(f"n{i:03}", cpu=f"{500 + i}m") for i in range(100))]
    (only,) = packed(nodes, [*pods, a_pod("late", cpu="555m", memory="9Gi")]).unplaced
    assert only.why == "0/101 nodes are available: 101 Insufficient memory, 55 Insufficient cpu."
