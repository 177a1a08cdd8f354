"""Nodes that are cordoned, fail, come back or vanish."""

from local.cluster.objects import is_ready
from tests.local.cluster.builders import Lab, a_daemonset, a_pod


def taints(lab: Lab, name: str) -> list[str]:
    lab.run()
    spec = lab.cluster.get("nodes", name)["spec"]
    return [f"{taint['key']}:{taint['effect']}" for taint in spec.get("taints", [])]


def test_cordoning_adds_the_unschedulable_taint_and_uncordoning_takes_it_off(lab):
    lab.cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    assert taints(lab, "n0") == ["node.kubernetes.io/unschedulable:NoSchedule"]
    lab.cluster.patch("nodes", "n0", {"spec": {"unschedulable": None}})
    assert taints(lab, "n0") == []
    assert lab.facts("node-cordoned") == lab.facts("node-uncordoned") == ["n0"]


def test_a_silent_node_is_tainted_and_its_pods_turn_unready_but_stay(lab):
    lab.deployed(replicas=3)
    lab.cluster.set_node_ready("n0", "Unknown")
    unreachable = "node.kubernetes.io/unreachable"
    assert taints(lab, "n0") == [f"{unreachable}:NoSchedule", f"{unreachable}:NoExecute"]
    unready = [pod for pod in lab.cluster.list("pods") if not is_ready(pod)]
    assert [pod["spec"]["nodeName"] for pod in unready] == ["n0"]


def test_after_five_minutes_pods_of_a_silent_node_are_replaced_but_hang_until_it_is_gone(lab):
    lab.deployed(replicas=3)
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.run(299)
    assert len(lab.pods()) == 3
    lab.run(60)
    assert len(lab.pods()) == 4
    lab.cluster.delete("nodes", "n0")
    lab.run(62)
    assert len(lab.pods()) == 3


def test_a_node_that_comes_back_in_time_keeps_its_pods(lab):
    before = lab.deployed(replicas=3)
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.run(60)
    lab.cluster.set_node_ready("n0", "True")
    assert taints(lab, "n0") == []
    lab.run(600)
    assert lab.pods() == before
    assert all(is_ready(pod) for pod in lab.cluster.list("pods"))


def test_no_kubelet_no_end_a_deleted_pod_on_a_silent_node_hangs_until_the_node_is_back(lab):
    lab.create("pods", a_pod("lone"))
    lab.run(2)
    node = lab.pod("lone")["spec"]["nodeName"]
    lab.cluster.set_node_ready(node, "Unknown")
    lab.cluster.delete("pods", "lone")
    lab.run(120)
    assert lab.pod("lone") is not None
    lab.cluster.set_node_ready(node, "True")
    lab.run(31)
    assert lab.pod("lone") is None


def test_a_no_execute_taint_drives_out_who_does_not_tolerate_it(lab):
    forever = [{"key": "maintenance", "operator": "Exists"}]
    a_while = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]
    for name, tolerations in (("never", []), ("a-while", a_while), ("forever", forever)):
        lab.create("pods", a_pod(name, grace=1, nodeSelector={"kubernetes.io/hostname": "n0"}, tolerations=tolerations))
    lab.run(2)
    lab.cluster.patch("nodes", "n0", {"spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}})
    lab.run(5)
    assert [lab.pod(name) is not None for name in ("never", "a-while", "forever")] == [False, True, True]
    lab.run(30)
    assert [lab.pod(name) is not None for name in ("never", "a-while", "forever")] == [False, False, True]


def test_daemon_pods_survive_a_silent_node(lab):
    lab.create("daemonsets", a_daemonset())
    lab.run(2)
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.run(900)
    assert len(lab.pods("agent")) == 3


def test_the_history_shows_a_nodes_life_in_order(lab):
    lab.cluster.patch("nodes", "n0", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.cluster.delete("nodes", "n0")
    kinds = [fact.kind.value for fact in lab.cluster.history.facts() if fact.about == "n0"]
    assert kinds == ["node-created", "node-ready", "node-tainted", "node-notready", "node-deleted"]


def test_a_node_that_is_lost_and_comes_back_is_in_the_events(lab):
    lab.run()
    lab.cluster.set_node_ready("n0", "Unknown")
    lab.run()
    lab.cluster.set_node_ready("n0", "True")
    lab.run()
    assert lab.reported("NodeNotReady") == [("n0", "node-controller")]
    assert lab.reported("NodeReady") == [("n0", "kubelet")]
