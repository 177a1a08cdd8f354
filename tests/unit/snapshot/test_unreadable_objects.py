"""An object with a field that planning cannot read: it alone is left where it is, and the others are planned for."""

import pytest

from leeward.errors import InvalidInputError
from leeward.ports.kubernetes import Listed
from leeward.scheduling.packing import attempt
from leeward.scheduling.world import World
from leeward.snapshot.gather import read_specs
from tests.unit.scheduling.raw import a_node, a_pod, spread


class Lists:
    """Raw objects by resource."""

    def __init__(self, nodes, pods):
        self.raw = {Listed.NODES: nodes, Listed.PODS: pods}

    def read(self, what, parse):
        return [parse(raw) for raw in self.raw.get(what, ())]


def planned(nodes, pods, *removed):
    world = World(*read_specs(Lists(nodes, pods)))
    return world, attempt(world, removed)


NODES = [a_node("n1"), a_node("n2"), a_node("n3")]
ODD = [a_pod("odd", node="n2", **spread(maxSkew="wide")), a_pod("odd", node="n2", cpu="lots")]


@pytest.mark.parametrize("odd", ODD, ids=["a rule", "an amount"])
def test_a_pod_that_cannot_be_read_is_unmovable_and_the_others_find_places(odd):
    world, packing = planned(NODES, [a_pod("web", node="n1"), odd], "n1")
    assert packing.placements == {"default/web": "n3"}
    (why,) = [pod.needs.never_placed for pod in world.pods_on("n2")]
    assert why.startswith("a pod with a field that planning cannot read (pod default/odd: ")
    assert not attempt(world, ["n2"]).complete


def test_a_node_that_cannot_be_read_takes_no_pods():
    nodes = [a_node("n1"), {**a_node("n2"), "status": {"allocatable": {"cpu": "lots"}}}, a_node("n3")]
    world, packing = planned(nodes, [a_pod("web", node="n1")], "n1")
    assert packing.placements == {"default/web": "n3"}
    assert "1 node(s) had a field that planning cannot read" in attempt(world, ["n1", "n3"]).unplaced[0].why


@pytest.mark.parametrize("metadata", [None, {}, {"name": None}, {"name": 5, "namespace": "shop"}])
def test_an_object_without_a_name_is_refused_in_one_sentence(metadata):
    with pytest.raises(InvalidInputError, match=r"^pod.*metadata.name: found no text, expected a name$"):
        planned(NODES, [{"metadata": metadata}])


def test_what_an_api_server_writes_as_null_counts_as_absent():
    nothing = dict.fromkeys(
        ("labels", "annotations", "ownerReferences", "deletionTimestamp", "finalizers", "namespace")
    )
    bare = {"metadata": {"name": "bare", **nothing}, "spec": {"nodeName": "n2", "tolerations": None, "volumes": None}}
    node = {"metadata": {"name": "n2", **nothing}, "spec": {"taints": None}, "status": a_node()["status"]}
    _, packing = planned([a_node("n1"), node], [{**bare, "status": None}], "n2")
    assert packing.placements == {"default/bare": "n1"}
