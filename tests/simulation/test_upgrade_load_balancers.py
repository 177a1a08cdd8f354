"""Old nodes leave external load balancers at once only where new ones serve every Service behind one (U7)."""

from leeward.model import well_known
from local.cluster.objects import labels_of
from tests.simulation.upgrade_stand_in import BEGIN, FIRST, Upgraded

OLD = [f"node-{FIRST[:-1]}{number}" for number in range(1, 7)]


def service(name, kind="LoadBalancer"):
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"type": kind}}


def slice_of(name, nodes, ready=True):
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": node, "conditions": {"ready": ready}} for node in nodes],
    }


def kind(obj):
    return {"Service": "services", "EndpointSlice": "endpointslices"}[obj["kind"]]


def excluded_when_all_are_cordoned(*objects):
    """Old nodes with the label at the first moment at which no old node is schedulable any more."""
    world, seen = Upgraded(), []
    cluster, look_on = world.world.cluster, world.world.seen

    def note():
        look_on()
        old = [node for node in cluster.store.each("nodes") if node["metadata"]["name"] in OLD]
        if not seen and len(old) == 6 and all(node["spec"].get("unschedulable") for node in old):
            seen.append({node["metadata"]["name"] for node in old if well_known.EXCLUDE_LABEL in labels_of(node)})

    world.world.seen = note
    world.at(BEGIN - 1, lambda: [cluster.create(kind(obj), obj, "default") for obj in objects])
    world.start(launchTemplateVersion="2").run()
    assert (world.ended(), world.at_rest()) == ("Upgraded", True)
    return seen[0]


def test_all_at_once_where_new_nodes_hold_a_ready_endpoint_of_each_such_service():
    new = "node-i-0000000000000000a"
    found = excluded_when_all_are_cordoned(
        service("web"), slice_of("web", [OLD[0], new]), service("inside", "ClusterIP"), slice_of("inside", [OLD[0]])
    )
    assert found == set(OLD)


def test_with_their_own_turn_where_one_such_service_is_served_by_old_nodes_alone():
    new = "node-i-0000000000000000a"
    found = excluded_when_all_are_cordoned(
        service("web"), slice_of("web", [new]), service("api"), slice_of("api", [OLD[0]])
    )
    assert found == set()


def test_with_their_own_turn_where_the_endpoint_on_a_new_node_is_not_ready():
    new = "node-i-0000000000000000a"
    assert excluded_when_all_are_cordoned(service("web"), slice_of("web", [new], ready=False)) == set()


def test_without_such_a_service_nothing_is_done_at_once():
    assert excluded_when_all_are_cordoned() == set()
