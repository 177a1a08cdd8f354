"""Creates, updates and patches: versions, conflicts, validation, subresources, server-side apply."""

import pytest

from local.cluster.errors import ApiError
from local.cluster.patches import PatchType
from tests.local.cluster.builders import a_pod, a_workload


def refused(call, *arguments, **options) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    return caught.value


def test_every_write_raises_the_version_and_an_equal_one_does_not(lab):
    before = lab.cluster.get("nodes", "n0")["metadata"]["resourceVersion"]
    same = lab.cluster.patch("nodes", "n0", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
    other = lab.cluster.patch("nodes", "n0", {"metadata": {"labels": {"team": "web"}}})
    assert same["metadata"]["resourceVersion"] == before
    assert int(other["metadata"]["resourceVersion"]) > int(before)


def test_an_update_with_a_stale_version_is_409(lab):
    node = lab.cluster.get("nodes", "n0")
    lab.cluster.patch("nodes", "n0", {"metadata": {"labels": {"team": "web"}}})
    answer = refused(lab.cluster.update, "nodes", node)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert "the object has been modified" in answer.message


def test_a_patch_that_carries_a_stale_version_is_409(lab):
    patch = {"metadata": {"resourceVersion": "1", "labels": {"team": "web"}}}
    assert refused(lab.cluster.patch, "nodes", "n0", patch, kind=PatchType.MERGE).code == 409


def test_creating_a_name_twice_is_409_and_in_a_missing_namespace_404(lab):
    lab.create("pods", a_pod())
    assert refused(lab.create, "pods", a_pod()).reason == "AlreadyExists"
    assert refused(lab.create, "pods", a_pod(), "nowhere").code == 404


def test_names_are_generated_and_uids_differ(lab):
    pod = a_pod()
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "job-"
    first, second = lab.create("pods", pod), lab.create("pods", pod)
    assert first["metadata"]["name"].startswith("job-")
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_write_to_the_object_leaves_its_status_alone_and_the_other_way_round(lab):
    node = lab.cluster.get("nodes", "n0")
    node["spec"]["unschedulable"] = True
    node["status"] = {}
    stored = lab.cluster.update("nodes", node)
    assert stored["status"]["conditions"]
    stored["spec"]["unschedulable"] = False
    stored["status"]["allocatable"]["cpu"] = "1"
    again = lab.cluster.update("nodes", stored, subresource="status")
    assert again["spec"]["unschedulable"] is True
    assert again["status"]["allocatable"]["cpu"] == "1"


def test_a_write_to_the_status_of_a_pod_changes_its_annotations_and_neither_spec_nor_owners(lab):
    pod = lab.create("pods", a_pod())
    name, space, spec = pod["metadata"]["name"], pod["metadata"]["namespace"], pod["spec"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "uid-n0"}
    patch = {
        "metadata": {"annotations": {"example.com/a": "b"}, "ownerReferences": [owner]},
        "spec": {"containers": [{**spec["containers"][0], "image": "theirs"}]},
    }
    stored = lab.cluster.patch("pods", name, patch, space, subresource="status")
    assert stored["metadata"]["annotations"]["example.com/a"] == "b"
    assert "ownerReferences" not in stored["metadata"]
    assert stored["spec"] == spec


@pytest.mark.parametrize(
    ("resource", "name", "patch"),
    [
        ("nodes", "n0", {"metadata": {"labels": {"a": "x" * 64}}}),
        ("nodes", "n0", {"metadata": {"labels": {"a b": "c"}}}),
        ("nodes", "n0", {"metadata": {"annotations": {"leeward.dev/since": 5}}}),
        ("nodes", "n0", {"metadata": {"finalizers": ["unqualified"]}}),
        ("nodes", "n0", {"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}}),
        ("nodes", "n0", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}),
        ("nodes", "n0", {"spec": {"providerID": "aws:///us-east-1a/i-other"}}),
        ("deployments", "web", {"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
    ],
)
def test_what_the_api_server_would_refuse_as_invalid_is_422(lab, resource, name, patch):
    lab.create("deployments", a_workload())
    answer = refused(lab.cluster.patch, resource, name, patch, kind=PatchType.MERGE)
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.details["causes"]


def test_a_running_pods_spec_cannot_change_except_for_its_image(lab):
    lab.create("pods", a_pod())
    container = {"name": "main", "image": "app:2"}
    lab.cluster.patch("pods", "lone", {"spec": {"containers": [container]}})
    assert lab.pod("lone")["spec"]["containers"][0]["image"] == "app:2"
    assert refused(lab.cluster.patch, "pods", "lone", {"spec": {"hostNetwork": True}}).code == 422


def test_an_event_about_a_node_belongs_into_the_namespace_default(lab):
    event = {"metadata": {"name": "n0.1"}, "involvedObject": {"kind": "Node", "name": "n0"}, "reason": "Drained"}
    lab.create("events", event)
    assert refused(lab.create, "events", event, "kube-system").code == 422


def test_a_strategic_patch_merges_conditions_by_type_and_replaces_taints(lab):
    lab.cluster.patch("nodes", "n0", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    node = lab.cluster.patch("nodes", "n0", {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}})
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["b"]
    patch = {"status": {"conditions": [{"type": "Healthy", "status": "True"}]}}
    node = lab.cluster.patch("nodes", "n0", patch, subresource="status")
    assert [c["type"] for c in node["status"]["conditions"]][-2:] == ["Ready", "Healthy"]


def test_strategic_directives_delete_and_replace(lab):
    pod = a_pod()
    pod["spec"]["volumes"] = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    deployment = a_workload()
    deployment["spec"]["template"]["spec"]["volumes"] = pod["spec"]["volumes"]
    lab.create("deployments", deployment)
    delete = {"spec": {"template": {"spec": {"volumes": [{"name": "a", "$patch": "delete"}]}}}}
    changed = lab.cluster.patch("deployments", "web", delete)
    assert [v["name"] for v in changed["spec"]["template"]["spec"]["volumes"]] == ["b"]
    replace = {"spec": {"template": {"spec": {"volumes": [{"$patch": "replace"}, {"name": "c", "emptyDir": {}}]}}}}
    changed = lab.cluster.patch("deployments", "web", replace)
    assert [v["name"] for v in changed["spec"]["template"]["spec"]["volumes"]] == ["c"]


def test_a_merge_patch_replaces_lists_and_null_removes(lab):
    patch = {"metadata": {"labels": {"kubernetes.io/os": None}, "annotations": {"a": "b"}}}
    node = lab.cluster.patch("nodes", "n0", patch, kind=PatchType.MERGE)
    assert "kubernetes.io/os" not in node["metadata"]["labels"]
    assert node["metadata"]["annotations"] == {"a": "b"}


def test_a_json_patch_tests_before_it_writes(lab):
    good = [{"op": "add", "path": "/metadata/labels/team", "value": "web"}]
    assert lab.cluster.patch("nodes", "n0", good, kind=PatchType.JSON)["metadata"]["labels"]["team"] == "web"
    bad = [{"op": "test", "path": "/metadata/labels/team", "value": "db"}, {"op": "remove", "path": "/spec"}]
    assert refused(lab.cluster.patch, "nodes", "n0", bad, kind=PatchType.JSON).code == 422


def labelled(**labels: str) -> dict:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0", "labels": labels}}


def test_an_apply_removes_what_the_same_applier_no_longer_sends(lab):
    lab.cluster.apply("nodes", "n0", labelled(a="1", b="2"), manager="one")
    node, created = lab.cluster.apply("nodes", "n0", labelled(a="1"), manager="one")
    assert not created
    assert node["metadata"]["labels"]["a"] == "1"
    assert "b" not in node["metadata"]["labels"]
    assert "kubernetes.io/os" in node["metadata"]["labels"]


def test_two_appliers_with_different_values_conflict_unless_forced(lab):
    lab.cluster.apply("nodes", "n0", labelled(a="1"), manager="one")
    answer = refused(lab.cluster.apply, "nodes", "n0", labelled(a="2"), manager="two")
    assert answer.code == 409
    assert answer.details["causes"][0]["field"] == ".metadata.labels.a"
    node, _ = lab.cluster.apply("nodes", "n0", labelled(a="2"), manager="two", force=True)
    assert node["metadata"]["labels"]["a"] == "2"


def test_an_apply_creates_what_is_not_there(lab):
    configuration = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    obj, created = lab.cluster.apply("configmaps", "settings", configuration, "default", manager="one")
    assert created
    assert obj["data"] == {"a": "b"}
    assert obj["metadata"]["managedFields"][0]["manager"] == "one"


def test_scaling_goes_through_the_scale_subresource(lab):
    lab.deployed(replicas=1)
    scale = lab.cluster.scale("deployments", "web", {"spec": {"replicas": 2}})
    lab.run(2)
    assert scale["spec"]["replicas"] == 2
    assert len(lab.pods()) == 2


def test_dry_runs_answer_but_store_nothing(lab):
    before = lab.cluster.store.version
    created = lab.cluster.create("pods", a_pod(), dry_run=True)
    patched = lab.cluster.patch("nodes", "n0", {"spec": {"unschedulable": True}}, dry_run=True)
    assert created["metadata"]["uid"]
    assert patched["spec"]["unschedulable"] is True
    assert lab.cluster.store.version == before
    assert lab.pod("lone") is None


def test_what_a_reader_changes_does_not_change_the_cluster(lab):
    node = lab.cluster.get("nodes", "n0")
    node["metadata"]["labels"].clear()
    lab.cluster.list("nodes")[0]["spec"].clear()
    assert lab.cluster.get("nodes", "n0")["metadata"]["labels"]
    assert lab.cluster.get("nodes", "n0")["spec"]["providerID"]
