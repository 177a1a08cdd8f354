"""Where pods go, and what is said when they cannot."""

import pytest

from local.cluster.errors import ApiError
from tests.local.cluster.builders import Lab, a_pod, a_workload

ZONE = "topology.kubernetes.io/zone"


def node_of(lab: Lab, name: str) -> str | None:
    lab.run()
    return lab.pod(name)["spec"].get("nodeName")


def unschedulable_message(lab: Lab, name: str) -> str:
    lab.run()
    condition = next(c for c in lab.pod(name)["status"]["conditions"] if c["type"] == "PodScheduled")
    assert condition["status"] == "False"
    return condition["message"]


def test_cpu_memory_and_pod_count_are_never_overcommitted():
    lab = Lab()
    lab.add_node("small", cpu="1", memory="1Gi", pods=3)
    for index in range(3):
        lab.create("pods", a_pod(f"p{index}", cpu="400m"))
    assert [node_of(lab, f"p{index}") for index in range(3)] == ["small", "small", None]
    assert unschedulable_message(lab, "p2") == "0/1 nodes are available: 1 Insufficient cpu."
    lab.create("pods", a_pod("tiny", cpu="10m"))
    lab.create("pods", a_pod("late", cpu="10m"))
    assert node_of(lab, "tiny") == "small"
    assert "Too many pods" in unschedulable_message(lab, "late")


def test_a_pod_that_waits_is_placed_when_a_node_comes_or_a_pod_goes():
    lab = Lab()
    lab.create("pods", a_pod("first", cpu="1500m"))
    assert unschedulable_message(lab, "first") == "no nodes available to schedule pods"
    lab.add_node("n0")
    lab.create("pods", a_pod("second", cpu="1500m"))
    assert (node_of(lab, "first"), node_of(lab, "second")) == ("n0", None)
    lab.cluster.delete("pods", "first")
    lab.run(31)
    assert node_of(lab, "second") == "n0"


def test_failed_scheduling_is_an_event_on_the_pod(lab):
    lab.create("pods", a_pod("huge", cpu="64"))
    lab.run()
    (event,) = lab.cluster.list("events", fields="involvedObject.name=huge,reason=FailedScheduling")
    assert event["type"] == "Warning"
    assert event["message"] == "0/3 nodes are available: 3 Insufficient cpu."


def test_cordoned_and_tainted_nodes_take_nothing_new(lab):
    lab.cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    taint = {"key": "leeward.dev/disrupted", "effect": "NoSchedule"}
    lab.cluster.patch("nodes", "n1", {"spec": {"taints": [taint]}})
    lab.create("deployments", a_workload(replicas=3))
    lab.run(2)
    assert {pod["spec"]["nodeName"] for pod in lab.cluster.list("pods")} == {"n2"}
    lab.create("pods", a_pod("picky", nodeSelector={ZONE: "us-east-1b"}))
    assert "1 node(s) had untolerated taint {leeward.dev/disrupted: }" in unschedulable_message(lab, "picky")


def test_a_tolerating_pod_may_go_to_a_tainted_node(lab):
    for name in ("n0", "n1", "n2"):
        taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        lab.cluster.patch("nodes", name, {"spec": {"taints": [taint]}})
    right = [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]
    wrong = [{"key": "gpu", "operator": "Equal", "value": "no"}]
    lab.create("pods", a_pod("right", tolerations=right))
    lab.create("pods", a_pod("wrong", tolerations=wrong))
    assert node_of(lab, "right") is not None
    assert node_of(lab, "wrong") is None


def test_node_selector_and_affinity_choose_the_zone(lab):
    lab.create("pods", a_pod("selected", nodeSelector={ZONE: "us-east-1c"}))
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["us-east-1b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    lab.create("pods", a_pod("affine", affinity={"nodeAffinity": required}))
    lab.create("pods", a_pod("nowhere", nodeSelector={ZONE: "us-east-1z"}))
    assert (node_of(lab, "selected"), node_of(lab, "affine")) == ("n2", "n1")
    assert "didn't match Pod's node affinity/selector" in unschedulable_message(lab, "nowhere")


def test_a_volume_ties_its_pod_to_the_zone(lab):
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["us-east-1b"]}]}
    volume = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    lab.create("persistentvolumes", {"metadata": {"name": "pv"}, "spec": volume})
    lab.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": {"volumeName": "pv"}})
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    lab.create("pods", a_pod("db", volumes=claim))
    assert node_of(lab, "db") == "n1"
    lab.cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    lab.create("pods", a_pod("db2", volumes=claim))
    assert "2 node(s) had volume node affinity conflict" in unschedulable_message(lab, "db2")


def test_a_missing_claim_keeps_the_pod_waiting_until_it_is_there(lab):
    claim = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    lab.create("pods", a_pod("db", volumes=claim))
    assert 'persistentvolumeclaim "data" not found' in unschedulable_message(lab, "db")
    lab.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": {}})
    assert node_of(lab, "db") is not None


def test_replicas_of_one_owner_spread_over_the_nodes(lab):
    lab.deployed(replicas=3)
    assert {pod["spec"]["nodeName"] for pod in lab.cluster.list("pods")} == {"n0", "n1", "n2"}


def test_hard_topology_spread_holds_back_what_would_skew(lab):
    rule = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    lab.cluster.patch("nodes", "n2", {"spec": {"unschedulable": True}})
    lab.create("deployments", a_workload(replicas=4, topologySpreadConstraints=[rule]))
    lab.run(2)
    placed = [pod for pod in lab.cluster.list("pods") if pod["spec"].get("nodeName")]
    assert len(placed) == 2


def test_anti_affinity_keeps_pods_of_one_kind_apart_also_against_newcomers(lab):
    selector = {"matchLabels": {"app": "web"}}
    terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}]
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    lab.create("deployments", a_workload(replicas=4, affinity=anti))
    lab.run(2)
    nodes = [pod["spec"].get("nodeName") for pod in lab.cluster.list("pods")]
    assert sorted(filter(None, nodes)) == ["n0", "n1", "n2"]
    lab.create("pods", a_pod("plain"))
    assert "didn't satisfy existing pods anti-affinity rules" in unschedulable_message(lab, "plain")


def test_the_more_important_pod_is_placed_first():
    lab = Lab()
    lab.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    lab.create("pods", a_pod("low", cpu="1500m"))
    lab.create("pods", a_pod("top", cpu="1500m", priorityClassName="high"))
    lab.add_node("n0")
    assert (node_of(lab, "top"), node_of(lab, "low")) == ("n0", None)


def test_manual_binding_works_once(lab):
    lab.create("pods", a_pod("mine", schedulerName="own"))
    assert node_of(lab, "mine") is None
    lab.cluster.bind("mine", "n1")
    assert node_of(lab, "mine") == "n1"
    with pytest.raises(ApiError) as refused:
        lab.cluster.bind("mine", "n2")
    assert refused.value.code == 409


def test_many_nodes_are_filled_without_looking_at_all_of_them():
    lab = Lab()
    for index in range(250):
        lab.add_node(f"n{index:03}", cpu="1")
    lab.create("deployments", a_workload(replicas=500, cpu="500m"))
    lab.run(2)
    assert lab.cluster.get("deployments", "web")["status"]["availableReplicas"] == 500
