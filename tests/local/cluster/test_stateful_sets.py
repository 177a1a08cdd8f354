"""StatefulSets: numbers, order, one pod after the other."""

import pytest

from local.cluster.deletion import DeleteOptions
from local.cluster.errors import ApiError
from local.cluster.objects import name_of
from tests.local.cluster.builders import Lab, a_budget, a_stateful_set, a_template


def started(lab: Lab, app: str = "db", **how) -> list[str]:
    lab.create("statefulsets", a_stateful_set(app, **how))
    lab.run(60)
    return lab.pods(app)


def status(lab: Lab, app: str = "db") -> dict:
    return lab.cluster.get("statefulsets", app)["status"]


def test_pods_are_numbered_and_each_starts_when_the_one_before_is_ready(lab):
    lab.create("statefulsets", a_stateful_set(volumes=0))
    lab.run()
    assert lab.pods("db") == ["db-0"]
    lab.run(1)
    assert lab.pods("db") == ["db-0", "db-1"]
    lab.run(5)
    assert lab.pods("db") == ["db-0", "db-1", "db-2"]
    pod = lab.pod("db-2")
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "db-2"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-2", "db")


def test_parallel_sets_start_all_their_pods_at_once(lab):
    lab.create("statefulsets", a_stateful_set(volumes=0, spec={"podManagementPolicy": "Parallel"}))
    lab.run()
    assert lab.pods("db") == ["db-0", "db-1", "db-2"]


def test_a_pod_that_is_not_ready_holds_back_those_behind_it_unless_they_start_in_parallel(lab):
    never = {"local.leeward.dev/never-ready": "true"}
    lab.create("statefulsets", a_stateful_set(volumes=0, annotations=never))
    lab.create(
        "statefulsets", a_stateful_set("cache", volumes=0, annotations=never, spec={"podManagementPolicy": "Parallel"})
    )
    lab.run(60)
    assert (lab.pods("db"), len(lab.pods("cache"))) == (["db-0"], 3)


def test_a_deleted_pod_comes_back_under_its_name_only_when_it_is_gone(lab):
    started(lab, grace=30)
    first = lab.pod("db-1")["metadata"]["uid"]
    lab.cluster.evict("db-1")
    lab.run(29)
    assert lab.pod("db-1")["metadata"]["uid"] == first
    assert status(lab)["currentReplicas"] == 2
    lab.run(10)
    assert lab.pod("db-1")["metadata"]["uid"] != first
    assert status(lab)["readyReplicas"] == 3


def test_a_changed_template_replaces_one_pod_at_a_time_from_the_highest_number_down(lab):
    started(lab, volumes=0, grace=5)
    before = status(lab)["currentRevision"]
    lab.cluster.patch("statefulsets", "db", {"spec": {"template": a_template("db", cpu="50m", grace=5)}})
    fewest = 3
    for _ in range(200):
        lab.run(0.1)
        fewest = min(fewest, status(lab).get("readyReplicas", 0))
        assert status(lab)["updateRevision"] != before
    assert fewest == 2
    gone = [name.removeprefix("default/") for name in lab.facts("pod-deleted")]
    assert gone == ["db-2", "db-1", "db-0"]
    assert status(lab)["currentRevision"] == status(lab)["updateRevision"]
    assert status(lab)["updatedReplicas"] == 3


def test_a_partition_and_on_delete_leave_pods_as_they_are(lab):
    update = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    started(lab, volumes=0, grace=1, spec={"updateStrategy": update})
    started(lab, "cache", volumes=0, grace=1, spec={"updateStrategy": {"type": "OnDelete"}})
    for app in ("db", "cache"):
        lab.cluster.patch("statefulsets", app, {"spec": {"template": a_template(app, cpu="50m", grace=1)}})
    lab.run(60)
    assert [name.removeprefix("default/") for name in lab.facts("pod-deleted")] == ["db-2"]


def test_scaling_down_takes_the_highest_numbers_one_by_one_and_keeps_their_claims(lab):
    started(lab, grace=10)
    lab.cluster.scale("statefulsets", "db", {"spec": {"replicas": 1}})
    lab.run(5)
    assert [name for name in lab.pods("db") if not lab.pod(name)["metadata"].get("deletionTimestamp")] == [
        "db-0",
        "db-1",
    ]
    lab.run(30)
    assert lab.pods("db") == ["db-0"]
    assert len(lab.cluster.list("persistentvolumeclaims")) == 3


def test_deleting_the_set_takes_the_pods_and_leaves_the_claims(lab):
    started(lab)
    lab.cluster.delete("statefulsets", "db")
    lab.run(31)
    assert lab.pods("db") == []
    assert len(lab.cluster.list("persistentvolumeclaims")) == 3


def test_a_budget_counts_the_replicas_that_the_set_wants(lab):
    started(lab, replicas=3)
    lab.create("poddisruptionbudgets", a_budget("db", maxUnavailable=1))
    assert (lab.budget("db")["expectedPods"], lab.budget("db")["disruptionsAllowed"]) == (3, 1)
    lab.cluster.evict("db-0")
    with pytest.raises(ApiError) as refused:
        lab.cluster.evict("db-1")
    assert refused.value.code == 429


def test_a_pod_on_a_silent_node_is_not_replaced_until_the_node_is_removed(lab):
    started(lab)
    node = lab.nodes_of("db")["db-1"]
    lab.cluster.set_node_ready(node, "Unknown")
    lab.run(400)
    assert lab.pod("db-1")["metadata"]["deletionTimestamp"]
    lab.cluster.delete("nodes", node)
    lab.run(62)
    assert not lab.pod("db-1")["metadata"].get("deletionTimestamp")


def test_a_finished_pod_is_deleted_and_started_anew(lab):
    started(lab, volumes=0, annotations={"local.leeward.dev/run-seconds": "100"})
    lab.run(100)
    assert [name.removeprefix("default/") for name in lab.facts("pod-deleted")][:1] == ["db-0"]
    assert lab.pod("db-0")["status"]["phase"] == "Running"


def test_a_name_that_another_owner_holds_is_left_alone(lab):
    lab.create("pods", {"metadata": {"name": "db-0"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    lab.create("statefulsets", a_stateful_set(volumes=0))
    lab.run(10)
    assert lab.pods("db") == []
    assert status(lab)["replicas"] == 0


@pytest.mark.parametrize("change", [{"serviceName": "other"}, {"volumeClaimTemplates": []}])
def test_what_a_set_is_made_of_cannot_be_changed(lab, change):
    started(lab)
    wanted = lab.cluster.get("statefulsets", "db")
    wanted["spec"].update(change)
    with pytest.raises(ApiError) as refused:
        lab.cluster.update("statefulsets", wanted)
    assert refused.value.code == 422


def test_a_forced_deletion_frees_the_name_at_once(lab):
    started(lab, grace=30)
    lab.cluster.delete("pods", "db-2", options=DeleteOptions(grace=0))
    lab.run()
    assert name_of(lab.pod("db-2")) == "db-2"
    assert lab.facts("pod-deleted") == ["default/db-2"]
