"""PodTopologySpread while nodes drain: a Node object counts as a domain until it is deleted, zones that can be launched
into count with 0 pods."""

from dataclasses import replace

from leeward.scheduling.packing import attempt, pack
from leeward.scheduling.pods import PodReader
from tests.unit.scheduling.raw import HOST, ZONE, a_line, a_node, a_pod, a_template, a_world, on_nodes, spread

ABC = [a_node(f"{zone}1", zone=zone) for zone in "abc"]


def one_a_zone(**more):
    return [a_pod(f"p-{zone}", node=f"{zone}1", **more) for zone in "abc"]


def placed(world, *nodes, **more):
    """Where the pods of the removed nodes start; None where one of them cannot."""
    packing = attempt(world, nodes, whole=True, **more)
    return dict(packing.placements) if packing.complete else None


def test_a_zone_whose_only_node_drains_keeps_its_pod():
    assert placed(a_world(ABC, one_a_zone(**spread())), "c1") is None


def test_an_evicted_pod_starts_on_another_node_of_its_zone():
    world = a_world([*ABC, a_node("c2", zone="c")], one_a_zone(**spread()))
    assert placed(world, "c1") == {"default/p-c": "c2"}


def test_two_zones_do_not_drain_at_once():
    world = a_world([*ABC, a_node("c2", zone="c")], one_a_zone(**spread()))
    assert placed(world, "b1", "c1") is None


def test_a_new_node_comes_up_in_the_zone_that_keeps_the_skew():
    world = a_world(ABC, one_a_zone(**spread()))
    packing = attempt(world, ["c1"], templates=[a_template(zones=("a", "b", "c"))], at_most=1, whole=True)
    assert [node.zone for node in packing.new_nodes] == ["c"]


def test_a_host_that_drains_is_a_domain_too():
    assert placed(a_world(ABC, one_a_zone(**spread(HOST))), "c1") is None
    world = a_world([*ABC, a_node("d1", zone="a")], one_a_zone(**spread(HOST)))
    assert placed(world, "c1") == {"default/p-c": "d1"}


def test_where_taints_are_honoured_a_draining_node_is_no_domain():
    world = a_world(ABC, one_a_zone(**spread(nodeTaintsPolicy="Honor")))
    assert placed(world, "c1") is not None


def test_where_taints_are_honoured_pods_that_tolerate_them_count_a_draining_node():
    everything = {"tolerations": [{"operator": "Exists"}]}
    world = a_world(ABC, one_a_zone(**spread(nodeTaintsPolicy="Honor"), **everything))
    assert placed(world, "c1") is None


def test_a_draining_node_that_node_affinity_leaves_out_is_no_domain():
    pods = [a_pod(f"p-{zone}", node=f"{zone}1", **spread(), **on_nodes(a_line(ZONE, "In", "a", "b"))) for zone in "ab"]
    stray = a_pod("p-c", node="c1", **spread(), **on_nodes(a_line(ZONE, "In", "a", "b")))
    assert placed(a_world(ABC, [*pods, stray]), "c1") is not None


def test_once_its_node_object_is_gone_the_domain_is_gone():
    world = a_world(ABC, one_a_zone(**spread()))
    with world.trial():
        pods = world.remove("c1")
        world.forget("c1")
        assert pack(world, pods, whole=True).complete
    assert placed(world, "c1") is None


def test_fewer_domains_than_min_domains_after_the_drain_refuse_the_pods():
    pods = one_a_zone(**spread(minDomains=3, nodeTaintsPolicy="Honor"))
    assert placed(a_world(ABC, pods), "c1") is None


def test_a_zone_that_can_be_launched_into_is_a_domain_without_pods():
    two, pods = ABC[:2], one_a_zone(**spread())[:2]
    nodes = [*two, a_node("a2", zone="a")]
    assert placed(a_world(nodes, [*pods, a_pod("p2", node="a2", **spread())]), "a2") is not None
    assert (
        placed(a_world(nodes, [*pods, a_pod("p2", node="a2", **spread())], launchable=[a_template(zones="abc")]), "a2")
        is None
    )


def test_a_zone_is_a_domain_by_its_id_too():
    key = "topology.k8s.aws/zone-id"
    nodes = [a_node(f"{zone}{n}", zone=zone, labels={key: zone}) for zone, n in (("a", 1), ("b", 1), ("a", 2))]
    pods = [a_pod(f"p-{node}", node=node, **spread(key)) for node in ("a1", "b1", "a2")]
    template = a_template(zones="abc")
    by_id = replace(template, offerings=tuple(replace(one, labels={key: one.zone}) for one in template.offerings))
    assert placed(a_world(nodes, pods), "a2") is not None
    assert placed(a_world(nodes, pods, launchable=[by_id]), "a2") is None


def test_a_zone_that_pods_may_not_be_launched_into_is_no_domain():
    nodes = [*ABC[:2], a_node("a2", zone="a")]
    only = on_nodes(a_line(ZONE, "In", "a", "b"))
    pods = [a_pod("p-a", node="a1", **spread(), **only), a_pod("p-b", node="b1", **spread(), **only)]
    tainted = a_template(zones="abc", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    plain = [a_pod("p2", node="a2", **spread(), **only)]
    assert placed(a_world(nodes, [*pods, *plain], launchable=[a_template(zones="abc")]), "a2") is not None
    free = [a_pod(name, node=node, **spread()) for name, node in (("p-a", "a1"), ("p-b", "b1"), ("p2", "a2"))]
    assert placed(a_world(nodes, free, launchable=[tainted]), "a2") is not None


def test_a_host_that_could_be_launched_is_no_domain():
    world = a_world([*ABC, a_node("d1")], one_a_zone(**spread(HOST)), launchable=[a_template(zones="abc")])
    assert placed(world, "a1") == {"default/p-a": "d1"}
    full = [a_pod("p-d", node="d1", **spread(HOST, skew=2)), *one_a_zone(**spread(HOST, skew=2))]
    world = a_world([*ABC, a_node("d1")], full, launchable=[a_template(zones="abc")])
    assert world.pending == []
    reader = PodReader()
    with world.trial():
        more = [reader.read(a_pod(f"m{i}", cpu="100m", **spread(HOST, skew=1))) for i in range(8)]
        assert pack(world, more, whole=True).complete


def test_a_node_that_takes_no_pods_says_why_and_stays_a_domain():
    world = a_world(
        ABC, [*one_a_zone(**spread()), a_pod("new", app="db", cpu="9")], closed={"a1": "node(s) were NotReady"}
    )
    (only,) = pack(world, world.pending).unplaced
    assert only.why == "0/3 nodes are available: 1 node(s) were NotReady, 2 Insufficient cpu."
