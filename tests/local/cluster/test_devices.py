"""Pods with resource claims, with rules that only some kubelets follow, and pods that are resized in place."""

import pytest

from leeward.scheduling.pods import as_held
from leeward.scheduling.pods import pod_requests as planned
from local.cluster.errors import ApiError
from local.cluster.patches import PatchType
from local.cluster.quantities import pod_requests
from tests.local.cluster.builders import Lab, a_pod, a_template

OF_CLAIM = [{"name": "gpu", "resourceClaimName": "gpu"}]
OF_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
CLAIM = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [{"name": "gpu"}]}}}
RULE = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}


def on(name):
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]}]
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}}


def allocate(lab, **allocation):
    lab.cluster.patch("resourceclaims", "gpu", {"status": {"allocation": allocation}}, subresource="status")


def test_a_pod_with_claims_waits_for_the_claim_and_for_its_allocation(lab):
    lab.create("pods", a_pod(resourceClaims=OF_CLAIM))
    assert 'could not find resourceclaim "default/gpu"' in lab.unschedulable_message("lone")
    lab.create("resourceclaims", CLAIM)
    assert lab.unschedulable_message("lone") == "0/3 nodes are available: 3 cannot allocate all claims."
    allocate(lab, **on("n1"))
    lab.run()
    assert lab.pod("lone")["spec"]["nodeName"] == "n1"


def test_a_pod_goes_where_its_claim_is_allocated_and_nowhere_else(lab):
    lab.create("resourceclaims", CLAIM)
    allocate(lab, **on("n1"))
    lab.cluster.patch("nodes", "n1", {"spec": {"unschedulable": True}})
    lab.create("pods", a_pod(resourceClaims=OF_CLAIM))
    assert "2 resourceclaim not available on the node" in lab.unschedulable_message("lone")


def test_a_claim_of_a_template_counts_once_the_pods_status_names_it_and_the_pod_owns_it(lab):
    pod = lab.create("pods", a_pod(resourceClaims=OF_TEMPLATE))
    assert 'pod "default/lone": ResourceClaim not created yet' in lab.unschedulable_message("lone")
    lab.create("resourceclaims", CLAIM)
    allocate(lab, **on("n2"))
    made = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu"}]}}
    lab.cluster.patch("pods", "lone", made, subresource="status")
    assert "was not created for pod default/lone" in lab.unschedulable_message("lone")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "lone", "uid": pod["metadata"]["uid"], "controller": True}
    lab.cluster.patch("resourceclaims", "gpu", {"metadata": {"ownerReferences": [owner]}})
    lab.run()
    assert lab.pod("lone")["spec"]["nodeName"] == "n2"


def test_a_pod_that_restarts_all_containers_needs_a_kubelet_that_declares_it():
    lab = Lab()
    lab.add_node("older", version="v1.35.3")
    pod = a_pod()
    pod["spec"]["containers"][0].update(restartPolicy="Never", restartPolicyRules=[RULE])
    lab.create("pods", pod)
    message = "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
    assert lab.unschedulable_message("lone") == message
    lab.add_node("newer", version="v1.36.2")
    lab.run()
    assert lab.pod("lone")["spec"]["nodeName"] == "newer"


def resize(lab, cpu, name="lone"):
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return lab.cluster.patch("pods", name, {"spec": {"containers": containers}}, subresource="resize")


def report(lab, cpu, name="lone"):
    """As its kubelet does while it shrinks the container."""
    status = {"name": "main", "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": cpu}}
    lab.cluster.patch("pods", name, {"status": {"containerStatuses": [status]}}, subresource="status")


def test_a_pod_that_is_made_smaller_holds_what_it_has_until_its_kubelet_says_otherwise():
    lab = Lab()
    lab.add_node("n0", cpu="4")
    lab.create("pods", a_pod(cpu="3"))
    lab.run(2)
    report(lab, "3")
    assert resize(lab, "1")["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1"
    lab.create("pods", a_pod("next", cpu="2"))
    assert "Insufficient cpu" in lab.unschedulable_message("next")
    report(lab, "1")
    lab.run()
    assert lab.pod("next")["spec"]["nodeName"] == "n0"


def test_a_resize_changes_sizes_alone(lab):
    lab.create("pods", a_pod())
    lab.run(2)
    smaller = {"name": "main", "image": "other:2", "resources": {"requests": {"cpu": "50m"}}}
    changed = lab.cluster.patch("pods", "lone", {"spec": {"containers": [smaller]}}, subresource="resize")
    assert changed["spec"]["containers"][0]["image"] == "app:1"
    wrong = [{"name": "main", "resources": {"requests": {"ephemeral-storage": "1Gi"}}}]
    with pytest.raises(ApiError, match="only cpu and memory resources are mutable"):
        lab.cluster.patch("pods", "lone", {"spec": {"containers": wrong}}, subresource="resize")
    smallest = {**smaller, "resources": {}}
    with pytest.raises(ApiError, match="may not change fields"):
        lab.cluster.patch("pods", "lone", {"spec": {"containers": [smallest]}}, kind=PatchType.MERGE)


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
HAS = {
    **{"name": "main", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}},
    "allocatedResources": {"cpu": "1500m", "memory": "64Mi"},
}


@pytest.mark.parametrize("asked", ["1", "3"])
@pytest.mark.parametrize("status", [{}, {"containerStatuses": [HAS]}], ids=["settled", "resizing"])
@pytest.mark.parametrize("conditions", [[], INFEASIBLE], ids=["", "infeasible"])
@pytest.mark.parametrize("of_pod", [{}, {"resources": {"requests": {"cpu": "5"}}}], ids=["", "pod-level"])
def test_the_emulators_scheduler_and_planning_count_the_same(asked, status, conditions, of_pod):
    spec = {**a_template(cpu=asked)["spec"], **of_pod}
    status = {**status, "conditions": conditions}
    thousandths = pod_requests({"spec": spec, "status": status})
    amounts = planned(as_held(spec, status))
    assert (thousandths["cpu"], thousandths["memory"] // 1000) == (amounts["cpu"], amounts["memory"])
