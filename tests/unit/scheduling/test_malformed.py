"""Objects that their schema does not allow: one error that names the object and what is wrong with it."""

import pytest

from leeward.errors import InvalidInputError
from leeward.scheduling.nodes import NodeSpec
from leeward.scheduling.pods import PodReader
from tests.unit.scheduling.raw import a_daemon_set, a_line, a_node, a_pod, a_term, away, on_nodes, spread


def without(raw, key):
    return {name: value for name, value in raw.items() if name != key}


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        (away(without(a_term(), "topologyKey")), "topologyKey is missing"),
        (on_nodes({"operator": "Exists"}), "key is missing"),
        (on_nodes(a_line("gen", "Like", "4")), "operator: found 'Like', expected one of In, NotIn"),
        (spread(whenUnsatisfiable="Never"), "whenUnsatisfiable: found 'Never', expected DoNotSchedule or Schedule"),
        (spread(nodeTaintsPolicy="Yes"), "nodeTaintsPolicy: found 'Yes', expected Ignore or Honor"),
        (spread(nodeAffinityPolicy="No"), "nodeAffinityPolicy: found 'No', expected Honor or Ignore"),
        (spread(maxSkew="wide"), "invalid literal for int"),
        ({"overhead": {"cpu": "lots"}}, "cpu: found 'lots'"),
        ({"containers": "none"}, "found something else than its schema allows"),
        ({"tolerations": ["all"]}, "found something else than its schema allows"),
        ({"schedulingGates": [{}]}, "name is missing"),
        ({"priority": "high"}, "invalid literal for int"),
        ({"volumes": [{"persistentVolumeClaim": {"readOnly": True}}]}, "claimName is missing"),
    ],
)
def test_a_pod_that_cannot_be_read_is_named(spec, what):
    with pytest.raises(InvalidInputError, match="pod shop/web-1: ") as found:
        PodReader().read(a_pod("web-1", namespace="shop", **spec))
    assert what in str(found.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"status": {"allocatable": {"memory": "8 GB"}}}, "memory: found '8 GB'"),
        ({"spec": {"taints": [{"effect": "NoSchedule"}]}}, "key is missing"),
        ({"spec": {"taints": "none"}}, "found something else than its schema allows"),
    ],
)
def test_a_node_that_cannot_be_read_is_named(change, what):
    raw = {**a_node("n1"), **change}
    with pytest.raises(InvalidInputError, match="node n1: ") as found:
        NodeSpec.from_json(raw)
    assert what in str(found.value)


def test_a_csi_node_that_cannot_be_read_names_its_node():
    with pytest.raises(InvalidInputError, match="node n1: name is missing"):
        NodeSpec.from_json(a_node("n1"), {"spec": {"drivers": [{"allocatable": {"count": 1}}]}})


@pytest.mark.parametrize(
    ("raw", "what"),
    [({}, "pod without metadata: metadata is missing"), ({"metadata": {}}, "pod without a name: name is missing")],
)
def test_an_object_without_a_name_is_reported_so(raw, what):
    with pytest.raises(InvalidInputError, match=what):
        PodReader().read(raw)


def test_a_daemon_set_without_a_template_is_named():
    raw = a_daemon_set()
    del raw["spec"]["template"]
    with pytest.raises(InvalidInputError, match="DaemonSet kube-system/agent: template is missing"):
        PodReader().daemon(raw)
