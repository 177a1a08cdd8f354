"""Deployments, ReplicaSets, DaemonSets and the kubelets that run their pods."""

from local.cluster.objects import labels_of, name_of
from tests.local.cluster.builders import Lab, a_daemonset, a_pod, a_template, a_workload


def test_a_deployment_owns_a_replica_set_that_owns_its_pods(lab):
    lab.deployed(replicas=2)
    (replicaset,) = lab.cluster.list("replicasets")
    digest = labels_of(replicaset)["pod-template-hash"]
    assert name_of(replicaset) == f"web-{digest}"
    assert replicaset["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    for pod in lab.cluster.list("pods", labels=f"pod-template-hash={digest}"):
        assert pod["metadata"]["ownerReferences"][0]["uid"] == replicaset["metadata"]["uid"]
    assert lab.cluster.get("deployments", "web")["status"]["availableReplicas"] == 2


def test_pods_start_after_the_configured_delay(lab):
    lab.create("deployments", a_workload())
    lab.run(0.9)
    assert lab.facts("pod-ready") == []
    lab.run(0.2)
    assert len(lab.facts("pod-ready")) == 3


def test_a_pods_own_start_delay_wins(lab):
    lab.create("pods", a_pod("slow", annotations={"local.leeward.dev/start-delay": "20"}))
    lab.run(19)
    assert lab.pod("slow")["status"]["phase"] == "Pending"
    lab.run(2)
    assert lab.pod("slow")["status"]["phase"] == "Running"


def test_a_replacement_is_created_as_soon_as_a_pod_is_deleting(lab):
    first, *_ = lab.deployed()
    lab.cluster.delete("pods", first)
    lab.run()
    assert len(lab.pods()) == 4


def test_a_rolling_update_never_has_fewer_than_the_minimum_available(lab):
    lab.deployed(replicas=4)
    lab.cluster.patch("deployments", "web", {"spec": {"template": a_template(cpu="200m")}})
    lowest = 4
    for _ in range(400):
        lab.run(0.1)
        lowest = min(lowest, lab.cluster.get("deployments", "web")["status"].get("availableReplicas", 0))
    status = lab.cluster.get("deployments", "web")["status"]
    assert lowest >= 3
    assert status["updatedReplicas"] == status["replicas"] == status["availableReplicas"] == 4
    assert sorted(entry["spec"]["replicas"] for entry in lab.cluster.list("replicasets")) == [0, 4]


def test_recreate_stops_all_before_it_starts_any(lab):
    workload = a_workload(replicas=2)
    workload["spec"]["strategy"] = {"type": "Recreate"}
    lab.create("deployments", workload)
    lab.run(2)
    lab.cluster.patch("deployments", "web", {"spec": {"template": a_template(cpu="200m")}})
    lab.run(60)
    assert lab.cluster.get("deployments", "web")["status"]["updatedReplicas"] == 2
    assert len(lab.pods()) == 2


def test_scaling_down_takes_pods_without_a_node_first():
    lab = Lab()
    lab.add_node("only", cpu="1", pods=2)
    lab.create("deployments", a_workload(replicas=3))
    lab.run(2)
    lab.cluster.patch("deployments", "web", {"spec": {"replicas": 2}})
    lab.run()
    assert all(pod["spec"].get("nodeName") for pod in lab.cluster.list("pods", labels="app=web"))


def test_available_waits_for_min_ready_seconds(lab):
    workload = a_workload(replicas=1)
    workload["spec"]["minReadySeconds"] = 10
    lab.create("deployments", workload)
    lab.run(5)
    assert "availableReplicas" not in lab.cluster.get("deployments", "web")["status"]
    lab.run(7)
    assert lab.cluster.get("deployments", "web")["status"]["availableReplicas"] == 1


def test_a_daemon_set_runs_on_every_node_also_on_cordoned_and_on_new_ones(lab):
    lab.cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}})
    lab.run()
    lab.create("daemonsets", a_daemonset())
    lab.run(2)
    lab.add_node("n3")
    lab.run(2)
    nodes = [pod["spec"]["nodeName"] for pod in lab.cluster.list("pods", labels="app=agent")]
    assert sorted(nodes) == ["n0", "n1", "n2", "n3"]
    assert lab.cluster.get("daemonsets", "agent")["status"]["numberReady"] == 4


def test_a_daemon_set_keeps_off_nodes_whose_taints_or_labels_do_not_fit(lab):
    lab.cluster.patch("nodes", "n0", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
    lab.create("daemonsets", a_daemonset(nodeSelector={"topology.kubernetes.io/zone": "us-east-1a"}))
    lab.create("daemonsets", a_daemonset("everywhere"))
    lab.run(2)
    assert lab.pods("agent") == []
    assert len(lab.pods("everywhere")) == 2


def test_a_taint_set_later_leaves_daemon_pods_in_place(lab):
    lab.create("daemonsets", a_daemonset())
    lab.run(2)
    lab.cluster.patch("nodes", "n0", {"spec": {"taints": [{"key": "leeward.dev/disrupted", "effect": "NoSchedule"}]}})
    lab.run(60)
    assert len(lab.pods("agent")) == 3


def test_a_deleted_daemon_pod_comes_back_on_the_same_node_once_it_is_gone(lab):
    lab.create("daemonsets", a_daemonset())
    lab.run(2)
    pod = lab.cluster.list("pods", labels="app=agent")[0]
    lab.cluster.delete("pods", name_of(pod))
    lab.run(5)
    assert len(lab.pods("agent")) == 3
    lab.run(30)
    nodes = [entry["spec"]["nodeName"] for entry in lab.cluster.list("pods", labels="app=agent")]
    assert sorted(nodes) == ["n0", "n1", "n2"]
    assert name_of(pod) not in lab.pods("agent")


def test_a_changed_daemon_template_replaces_pods_one_at_a_time(lab):
    lab.create("daemonsets", a_daemonset(grace=5))
    lab.run(2)
    lab.cluster.patch("daemonsets", "agent", {"spec": {"template": a_template("agent", cpu="50m", grace=5)}})
    fewest = 3
    for _ in range(60):
        lab.run(0.5)
        fewest = min(fewest, lab.cluster.get("daemonsets", "agent")["status"]["numberReady"])
    assert fewest == 2
    requests = {p["spec"]["containers"][0]["resources"]["requests"]["cpu"] for p in lab.cluster.list("pods")}
    assert requests == {"50m"}


def test_the_controllers_events_count_up_instead_of_repeating(lab):
    node = lab.cluster.get("nodes", "n0")
    for _ in range(3):
        lab.cluster.events.record(node, "Drained", "the same words", source="test")
    (event,) = lab.cluster.list("events", fields="reason=Drained")
    assert event["count"] == 3
    lab.run(3601)
    assert lab.cluster.list("events", fields="reason=Drained") == []
