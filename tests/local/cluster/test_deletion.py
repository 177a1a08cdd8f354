"""How objects go: grace periods, finalizers, preconditions, owners."""

import pytest

from local.cluster.deletion import DeleteOptions
from local.cluster.errors import ApiError
from local.cluster.patches import PatchType
from tests.local.cluster.builders import Lab, a_pod, a_workload


def running_pod(lab, **template) -> str:
    lab.create("pods", a_pod("lone", **template))
    lab.run(2)
    return "lone"


def test_a_pod_lives_through_its_grace_period(lab):
    running_pod(lab, grace=30)
    lab.cluster.delete("pods", "lone")
    lab.run(29.9)
    assert lab.pod("lone")["metadata"]["deletionTimestamp"]
    lab.run(0.2)
    assert lab.pod("lone") is None


def test_the_termination_scale_shortens_the_stop_but_not_the_deadline_shown():
    lab = Lab(nodes=1, termination_scale=0.1)
    running_pod(lab, grace=30)
    lab.cluster.delete("pods", "lone")
    assert lab.pod("lone")["metadata"]["deletionGracePeriodSeconds"] == 30
    lab.run(3.1)
    assert lab.pod("lone") is None


def test_a_pod_that_ignores_sigterm_sits_out_its_whole_grace_whatever_the_scale():
    lab = Lab(nodes=1, termination_scale=0.1)
    running_pod(lab, grace=30, annotations={"local.leeward.dev/ignore-sigterm": "true"})
    lab.cluster.delete("pods", "lone")
    lab.run(29.9)
    assert lab.pod("lone") is not None
    lab.run(0.2)
    assert lab.pod("lone") is None


def test_a_second_delete_shortens_the_grace_but_never_lengthens_it(lab):
    running_pod(lab, grace=30)
    lab.cluster.delete("pods", "lone")
    lab.cluster.delete("pods", "lone", options=DeleteOptions(grace=60))
    assert lab.pod("lone")["metadata"]["deletionGracePeriodSeconds"] == 30
    lab.cluster.delete("pods", "lone", options=DeleteOptions(grace=5))
    lab.run(5.1)
    assert lab.pod("lone") is None


def test_grace_zero_removes_at_once(lab):
    running_pod(lab)
    lab.cluster.delete("pods", "lone", options=DeleteOptions(grace=0))
    assert lab.pod("lone") is None


def test_a_pod_without_a_node_goes_at_once():
    lab = Lab(nodes=0)
    lab.create("pods", a_pod("lone"))
    lab.run()
    lab.cluster.delete("pods", "lone")
    assert lab.pod("lone") is None


def test_a_node_with_a_finalizer_stays_deleting_until_it_is_taken_off(lab):
    lab.cluster.patch("nodes", "n0", {"metadata": {"finalizers": ["leeward.dev/termination"]}})
    deleted = lab.cluster.delete("nodes", "n0")
    assert deleted["metadata"]["deletionTimestamp"]
    assert lab.cluster.get("nodes", "n0")["metadata"]["deletionGracePeriodSeconds"] == 0
    lab.cluster.patch("nodes", "n0", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["leeward.dev/termination"]}})
    assert lab.cluster.store.find("nodes", "n0") is None
    assert lab.facts("node-deletion-started") == lab.facts("node-deleted") == ["n0"]


def test_no_finalizer_can_be_added_to_a_deleting_object(lab):
    lab.cluster.patch("nodes", "n0", {"metadata": {"finalizers": ["leeward.dev/termination"]}})
    lab.cluster.delete("nodes", "n0")
    with pytest.raises(ApiError) as refused:
        lab.cluster.patch("nodes", "n0", {"metadata": {"finalizers": ["leeward.dev/another"]}})
    assert refused.value.code == 422


def test_a_pod_with_a_finalizer_stops_but_stays_until_it_is_taken_off(lab):
    pod = a_pod("held", grace=5)
    pod["metadata"]["finalizers"] = ["leeward.dev/test"]
    lab.create("pods", pod)
    lab.run(2)
    lab.cluster.delete("pods", "held")
    lab.run(6)
    assert lab.pod("held")["status"]["phase"] == "Succeeded"
    lab.cluster.patch("pods", "held", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["leeward.dev/test"]}})
    assert lab.pod("held") is None


def test_a_stale_resource_version_precondition_is_409(lab):
    with pytest.raises(ApiError) as refused:
        lab.cluster.delete("nodes", "n0", options=DeleteOptions(resource_version="1"))
    assert refused.value.code == 409


def test_deleting_a_deployment_takes_its_replica_set_and_pods_along(lab):
    lab.deployed()
    lab.cluster.delete("deployments", "web")
    lab.run(31)
    assert lab.cluster.list("replicasets") == []
    assert lab.pods() == []


def test_orphaning_leaves_the_pods(lab):
    lab.create("replicasets", a_workload())
    lab.run(2)
    lab.cluster.delete("replicasets", "web", options=DeleteOptions(propagation="Orphan"))
    lab.run(60)
    assert len(lab.pods()) == 3


def test_pods_of_a_vanished_node_are_collected_and_replaced_elsewhere(lab):
    lab.deployed()
    lost = set(lab.pods()) - {name for name, node in lab.nodes_of().items() if node != "n0"}
    lab.cluster.delete("nodes", "n0")
    lab.run(38)  # the pod garbage collector leaves them for its quarantine of 40 s, and looks every 20 s
    assert lost <= set(lab.pods())
    lab.run(25)
    nodes = {pod["spec"]["nodeName"] for pod in lab.cluster.list("pods", labels="app=web")}
    assert len(lab.pods()) == 3
    assert "n0" not in nodes


def test_deleting_a_namespace_empties_it(lab):
    lab.create("namespaces", {"metadata": {"name": "team"}})
    lab.create("configmaps", {"metadata": {"name": "settings"}}, "team")
    lab.cluster.delete("namespaces", "team")
    lab.run()
    assert lab.cluster.list("configmaps", "team") == []


def test_a_namespace_stays_terminating_while_a_pod_with_a_finalizer_is_in_it(lab):
    lab.create("namespaces", {"metadata": {"name": "team"}})
    lab.create("configmaps", {"metadata": {"name": "settings"}}, "team")
    pod = a_pod("held")
    pod["metadata"]["finalizers"] = ["example.com/held"]
    lab.create("pods", pod, "team")
    lab.run(2)
    lab.cluster.delete("namespaces", "team")
    lab.run(600)
    assert lab.cluster.get("namespaces", "team")["status"]["phase"] == "Terminating"
    assert lab.cluster.list("configmaps", "team") == []
    with pytest.raises(ApiError, match="because it is being terminated"):
        lab.create("configmaps", {"metadata": {"name": "more"}}, "team")
    lab.cluster.patch("pods", "held", {"metadata": {"finalizers": None}}, "team", kind=PatchType.MERGE)
    lab.run()
    assert lab.cluster.store.find("namespaces", "team") is None


def test_the_namespaces_of_the_system_may_not_be_deleted(lab):
    with pytest.raises(ApiError, match="this namespace may not be deleted"):
        lab.cluster.delete("namespaces", "kube-system")


def test_a_delete_as_dry_run_changes_nothing(lab):
    before = lab.cluster.store.version
    lab.cluster.delete("nodes", "n0", dry_run=True)
    assert lab.cluster.store.version == before
