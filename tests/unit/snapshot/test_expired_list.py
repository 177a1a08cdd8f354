"""A list of objects that expires between two pages is begun again: what was parsed before counts once."""

from leeward.ports.kubernetes import Listed
from leeward.snapshot.gather import read_specs
from tests.fakes.kubernetes import FakeKubernetes


class ExpiringKubernetes(FakeKubernetes):
    """Its lists expire after their first page, which holds half of the objects."""

    def read(self, what, parse):
        """The first page in vain, then everything."""
        for raw in self.raw.get(what, ())[:1]:
            parse(raw)
        return super().read(what, parse)


def raw_pod(name: str) -> dict:
    """Runs on a node, asks for nothing."""
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"nodeName": "node-a"}, "status": {}}


def test_a_list_that_expires_adds_no_node_and_no_pod_twice():
    node = {"metadata": {"name": "node-a"}, "spec": {}, "status": {}}
    cluster = ExpiringKubernetes()
    cluster.raw = {Listed.NODES: [node], Listed.PODS: [raw_pod("web-1"), raw_pod("web-2")]}
    nodes, pods = read_specs(cluster)
    assert [node.name for node in nodes] == ["node-a"]
    assert [pod.name for pod in pods] == ["web-1", "web-2"]
