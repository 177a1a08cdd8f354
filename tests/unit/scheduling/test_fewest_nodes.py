"""Order of pods for few nodes, by requests alone: never a worse one, and the same for the same pods."""

from hypothesis import given
from hypothesis import strategies as st

from leeward.scheduling import packing
from leeward.scheduling.packing import MOST_PODS, fewer_nodes, lower_bound, pack
from leeward.scheduling.pods import PodReader
from tests.unit.scheduling.raw import a_node, a_pod, a_template, a_term, a_world, away

NODE = (10, 10)
PODS = [(1, 7), (1, 5), (4, 2), (4, 3), (6, 1)]  # by cpu or by size first fit takes three nodes
AMOUNTS = st.tuples(st.integers(0, 10), st.integers(0, 10))


def nodes_of(order, pods):
    return len(packing._first_fit(order, pods, NODE))


@given(st.lists(AMOUNTS, min_size=1, max_size=25))
def test_first_fit_keeps_the_promise_of_the_order(pods):
    than = nodes_of(range(len(pods)), pods)
    order = fewer_nodes(pods, NODE, than)
    assert order is None or sorted(order) == list(range(len(pods)))
    assert order is None or lower_bound(pods, NODE) <= nodes_of(order, pods) < than


def test_pods_that_go_together_are_found():
    order = fewer_nodes(PODS, NODE, than=3)
    assert order is not None
    assert nodes_of(order, PODS) == 2


def test_nothing_is_tried_at_the_lower_bound_and_for_very_many_pods():
    assert fewer_nodes(PODS, NODE, than=2) is None
    assert fewer_nodes([(1, 1)] * (MOST_PODS + 1), NODE, than=10**6) is None


def requests(pairs):
    return [a_pod(f"p{at}", cpu=str(cpu), memory=f"{memory}Gi") for at, (cpu, memory) in enumerate(pairs)]


def test_new_nodes_are_as_few_as_another_order_needs():
    world = a_world([], [])
    pods = PodReader().read_all(requests(PODS))
    packing = pack(world, pods, templates=[a_template("web", cpu="10", memory="10Gi")])
    assert packing.complete
    assert len(packing.new_nodes) == 2


def test_the_larger_share_of_a_node_is_placed_first():
    """Only one of the two has room on the existing node: the one with little cpu and nearly all memory."""
    nodes, template = [a_node("there", cpu="10", memory="10Gi")], a_template("web", cpu="10", memory="10Gi")
    packing = pack(a_world(nodes, []), PodReader().read_all(requests([(3, 2), (2, 9)])), templates=[template])
    assert packing.placements["default/p1"] == "there"


def test_rules_decide_and_not_the_proposal():
    """Pods that keep off each other's host need a node each, whatever their requests would allow."""
    pods = PodReader().read_all([a_pod(f"p{at}", **away(a_term())) for at in range(3)])
    packing = pack(a_world([], []), pods, templates=[a_template("web", cpu="10", memory="10Gi")])
    assert len(packing.new_nodes) == 3
