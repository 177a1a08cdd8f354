"""Claims, volumes and attachments: made where the pod lands, moved only when they have left the node before."""

import pytest

from local.cluster.deletion import DeleteOptions
from local.cluster.objects import labels_of, name_of, node_of, phase_of
from local.cluster.volumes import gp3_class
from tests.local.cluster.builders import Lab, a_pod, a_stateful_set

ZONE = "topology.kubernetes.io/zone"


def mounting(*claims: str) -> list[dict]:
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]


def a_claim(lab: Lab, name: str = "data", **spec) -> None:
    size = {"requests": {"storage": "8Gi"}}
    lab.create("persistentvolumeclaims", {"metadata": {"name": name}, "spec": {"resources": size, **spec}})


def database(nodes: int = 3, **how) -> Lab:
    """One pod with one volume, up and running."""
    lab = Lab(nodes=nodes)
    lab.create("statefulsets", a_stateful_set(replicas=1, **how))
    lab.run(10)
    assert phase_of(lab.pod("db-0")) == "Running"
    return lab


def test_a_claim_waits_for_its_first_pod_and_gets_a_volume_in_the_zone_where_that_lands(lab):
    a_claim(lab)
    lab.run(60)
    assert lab.cluster.get("persistentvolumeclaims", "data")["status"]["phase"] == "Pending"
    lab.create("pods", a_pod("db", volumes=mounting("data"), nodeSelector={ZONE: "us-east-1b"}))
    lab.run()
    claim = lab.cluster.get("persistentvolumeclaims", "data")
    volume = lab.cluster.get("persistentvolumes", claim["spec"]["volumeName"])
    assert (claim["status"]["phase"], volume["status"]["phase"]) == ("Bound", "Bound")
    assert claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == "gp3"
    assert volume["spec"]["capacity"] == claim["status"]["capacity"] == {"storage": "8Gi"}
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["us-east-1b"]}]
    assert volume["spec"]["claimRef"]["name"] == "data"


def test_a_pod_with_a_volume_comes_back_in_its_zone_only(lab):
    lab = database()
    home = node_of(lab.pod("db-0"))
    lab.cluster.patch("nodes", home, {"spec": {"unschedulable": True}})
    lab.cluster.evict("db-0")
    lab.run(40)
    assert "2 node(s) had volume node affinity conflict" in lab.unschedulable_message("db-0")
    zone = labels_of(lab.cluster.get("nodes", home))[ZONE]
    lab.add_node("n9", zone=zone)
    lab.run(10)
    assert (node_of(lab.pod("db-0")), phase_of(lab.pod("db-0"))) == ("n9", "Running")


def test_a_class_that_binds_at_once_needs_no_pod_and_no_class_keeps_the_pod_waiting(lab):
    lab.create("storageclasses", {**gp3_class(), "metadata": {"name": "now"}, "volumeBindingMode": "Immediate"})
    a_claim(lab, storageClassName="now")
    a_claim(lab, "loose", storageClassName="")
    lab.create("pods", a_pod("db", volumes=mounting("loose")))
    lab.run()
    assert lab.cluster.get("persistentvolumeclaims", "data")["status"]["phase"] == "Bound"
    assert "pod has unbound immediate PersistentVolumeClaims" in lab.unschedulable_message("db")


def test_a_class_that_binds_at_once_waits_for_the_first_node():
    lab = Lab()
    lab.create("storageclasses", {**gp3_class(), "metadata": {"name": "now"}, "volumeBindingMode": "Immediate"})
    a_claim(lab, storageClassName="now")
    lab.run(10)
    assert lab.cluster.list("persistentvolumes") == []
    lab.add_node("n0", zone="us-east-1c")
    lab.run()
    (volume,) = lab.cluster.list("persistentvolumes")
    assert "us-east-1c" in str(volume["spec"]["nodeAffinity"])


def test_allowed_topologies_keep_new_volumes_out_of_other_zones(lab):
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["us-east-1c"]}]}]
    lab.create("storageclasses", {**gp3_class(), "metadata": {"name": "c"}, "allowedTopologies": allowed})
    a_claim(lab, storageClassName="c")
    lab.create("pods", a_pod("db", volumes=mounting("data")))
    lab.create("pods", a_pod("far", volumes=mounting("data"), nodeSelector={ZONE: "us-east-1a"}))
    lab.run()
    assert node_of(lab.pod("db")) == "n2"


def test_a_pod_starts_when_its_volume_is_attached():
    lab = Lab(nodes=1, volume_attach=5.0)
    lab.create("statefulsets", a_stateful_set(replicas=1))
    lab.run(4.9)
    assert phase_of(lab.pod("db-0")) == "Pending"
    assert lab.attachments() == [("n0", False)]
    lab.run(0.2)
    assert phase_of(lab.pod("db-0")) == "Running"
    assert lab.attachments() == [("n0", True)]


def test_a_pod_elsewhere_waits_until_the_volume_has_left_its_old_node():
    lab = Lab(volume_attach=2.0, volume_detach=7.0)
    for name in ("n0", "n1"):
        lab.add_node(name)
    lab.create("statefulsets", a_stateful_set(replicas=1, grace=10))
    lab.run(10)
    home = node_of(lab.pod("db-0"))
    other = "n1" if home == "n0" else "n0"
    lab.cluster.patch("nodes", home, {"spec": {"unschedulable": True}})
    lab.cluster.evict("db-0")
    lab.run(10 + 6.9)
    assert (node_of(lab.pod("db-0")), phase_of(lab.pod("db-0"))) == (other, "Pending")
    assert lab.attachments() == [(home, True)]
    (event,) = lab.cluster.list("events", fields="reason=FailedAttachVolume")
    assert "Multi-Attach error" in event["message"]
    lab.run(0.2)
    assert lab.attachments() == [(other, False)]
    lab.run(2)
    assert phase_of(lab.pod("db-0")) == "Running"


def test_a_volume_stays_for_a_pod_that_comes_back_to_the_same_node():
    lab = database(nodes=1, grace=2)
    first = [name_of(entry) for entry in lab.cluster.list("volumeattachments")]
    version = lab.cluster.list("volumeattachments")[0]["metadata"]["uid"]
    lab.cluster.delete("pods", "db-0")
    lab.run(30)
    assert phase_of(lab.pod("db-0")) == "Running"
    assert [name_of(entry) for entry in lab.cluster.list("volumeattachments")] == first
    assert lab.cluster.list("volumeattachments")[0]["metadata"]["uid"] == version


@pytest.mark.parametrize(("silent", "seconds"), [(False, 5), (True, 360)])
def test_a_volume_that_is_not_unmounted_leaves_after_six_minutes(silent, seconds):
    lab = database(nodes=1)
    lab.cluster.scale("statefulsets", "db", {"spec": {"replicas": 0}})
    if silent:
        lab.cluster.set_node_ready("n0", "Unknown")
    lab.cluster.delete("pods", "db-0", options=DeleteOptions(grace=0))
    lab.run(seconds - 0.5)
    assert lab.attachments() == [("n0", True)]
    lab.run(1)
    assert lab.attachments() == []


def test_a_volume_of_a_node_out_of_service_is_taken_at_once_and_its_pod_comes_back_elsewhere():
    """Non-graceful node shutdown: the taint says that no kubelet can unmount it any more."""
    lab = database()
    home = node_of(lab.pod("db-0"))
    zone = labels_of(lab.cluster.get("nodes", home))[ZONE]
    lab.add_node("n9", zone=zone)
    lab.cluster.set_node_ready(home, "Unknown")
    lab.cluster.delete("pods", "db-0", "default")
    lab.run(60)
    assert node_of(lab.pod("db-0")) == home
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    lab.cluster.patch("nodes", home, {"spec": {"taints": [taint]}})
    lab.run(20)
    assert (node_of(lab.pod("db-0")), phase_of(lab.pod("db-0"))) == ("n9", "Running")


def test_the_taint_takes_nothing_from_a_node_whose_kubelet_acts():
    lab = database()
    home = node_of(lab.pod("db-0"))
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoSchedule"}
    lab.cluster.patch("nodes", home, {"spec": {"taints": [taint]}})
    lab.run(60)
    (attachment,) = lab.cluster.list("volumeattachments")
    assert (attachment["spec"]["nodeName"], phase_of(lab.pod("db-0"))) == (home, "Running")


def test_a_volume_for_many_is_attached_to_several_nodes(lab):
    driver = {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1"}
    spec = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Ti"}, "csi": driver}
    lab.create("persistentvolumes", {"metadata": {"name": "shared"}, "spec": spec})
    a_claim(lab, volumeName="shared")
    for zone in "ab":
        lab.create("pods", a_pod(f"reader-{zone}", volumes=mounting("data"), nodeSelector={ZONE: f"us-east-1{zone}"}))
    lab.run(5)
    assert sorted(lab.attachments()) == [("n0", True), ("n1", True)]


def test_a_deleted_claim_takes_its_volume_and_the_attachment_along():
    lab = database(nodes=1)
    lab.cluster.delete("statefulsets", "db")
    lab.run(31)
    lab.cluster.delete("persistentvolumeclaims", "data-0-db-0")
    lab.run()
    assert lab.cluster.list("persistentvolumes") == []
    assert lab.attachments() == []


def test_a_retained_volume_is_released(lab):
    lab.create("storageclasses", {**gp3_class(), "metadata": {"name": "kept"}, "reclaimPolicy": "Retain"})
    a_claim(lab, storageClassName="kept")
    lab.create("pods", a_pod("db", volumes=mounting("data")))
    lab.run(5)
    lab.cluster.delete("pods", "db", options=DeleteOptions(grace=0))
    lab.cluster.delete("persistentvolumeclaims", "data")
    lab.run()
    (volume,) = lab.cluster.list("persistentvolumes")
    assert volume["status"]["phase"] == "Released"
