"""Pods whose rules planning does not follow are not placed; every field of the API's pods is known or irrelevant."""

import pytest

from leeward.model.pod import Pod
from leeward.model.pod_limits import POD_GROUP, RESOURCE_CLAIMS, RESTART_RULES
from leeward.scheduling.pods import PodReader
from local.cluster.schemas import model_named

READ = {  # by planning, or by the rules that make a pod unmovable
    *("affinity", "containers", "hostNetwork", "initContainers", "nodeName", "nodeSelector", "overhead", "priority"),
    *("priorityClassName", "resourceClaims", "resources", "schedulingGates", "schedulingGroup", "tolerations"),
    *("topologySpreadConstraints", "terminationGracePeriodSeconds", "volumes"),
}
IRRELEVANT = {  # for where a pod may run
    *("activeDeadlineSeconds", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks"),
    *("hostAliases", "hostIPC", "hostPID", "hostname", "hostnameOverride", "imagePullSecrets", "readinessGates"),
    *("restartPolicy", "securityContext", "serviceAccount", "serviceAccountName", "setHostnameAsFQDN"),
    *("shareProcessNamespace", "subdomain", "ephemeralContainers"),  # ephemeral containers may not have resources
    "hostUsers",  # a node that cannot map users runs no such pod now either
    "preemptionPolicy",  # no plan preempts
    "runtimeClassName",  # its node selector, tolerations and overhead are merged into the pod
    "schedulerName",  # pods of others are left out by the caller
    "os",  # a node's own label decides, which `nodeSelector` names where it matters
}
OF_CONTAINERS = {"name", "ports", "resources", "restartPolicy", "restartPolicyRules"}
IRRELEVANT_OF_CONTAINERS = {
    *("args", "command", "env", "envFrom", "image", "imagePullPolicy", "lifecycle", "livenessProbe", "readinessProbe"),
    *("resizePolicy", "securityContext", "startupProbe", "stdin", "stdinOnce", "terminationMessagePath"),
    *("terminationMessagePolicy", "tty", "volumeDevices", "volumeMounts", "workingDir"),
}
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]


def a_raw_pod(kind="ReplicaSet", **spec):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web-abc", "controller": True}
    meta = {"name": "web-1", "namespace": "shop", "uid": "u", "ownerReferences": [owner]}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}}}]
    return {"metadata": meta, "spec": {"nodeName": "node-a", "containers": containers, **spec}, "status": {}}


@pytest.mark.parametrize(
    ("model", "known"),
    [("core_v1.PodSpec", READ | IRRELEVANT), ("core_v1.Container", OF_CONTAINERS | IRRELEVANT_OF_CONTAINERS)],
)
def test_every_field_of_the_api_is_read_or_irrelevant(model, known):
    assert set(model_named(model).fields) - known == set()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}, RESOURCE_CLAIMS),
        ({"schedulingGroup": {"podGroupName": "train"}}, POD_GROUP),
        ({"workloadRef": {"name": "train", "podGroup": "workers"}}, POD_GROUP),
        ({"containers": [{"name": "a"}, {"name": "b", "restartPolicyRules": RULES}]}, RESTART_RULES),
        ({"initContainers": [{"name": "a", "restartPolicyRules": RULES}]}, RESTART_RULES),
    ],
)
def test_such_a_pod_is_placed_by_no_plan_and_says_so(spec, reason):
    raw = a_raw_pod(**spec)
    needs = PodReader().read(raw).needs
    assert (needs.beyond_limit, Pod.from_json(raw).beyond_limit) == (reason, reason)
    assert needs.never_placed == f"a pod with {reason}"
    assert not needs.closes_node


def test_its_requests_still_count_for_its_node():
    needs = PodReader().read(a_raw_pod(resourceClaims=[{"name": "gpu"}])).needs
    assert needs.asked("example.com/gpu") == 2


@pytest.mark.parametrize("spec", [{}, {"resourceClaims": []}, {"schedulingGroup": None}])
def test_any_other_pod_is_judged(spec):
    raw = a_raw_pod(**spec)
    assert (PodReader().read(raw).needs.beyond_limit, Pod.from_json(raw).beyond_limit) == ("", "")


def test_a_daemon_pod_with_claims_stays_with_its_node_and_is_counted():
    assert PodReader().read(a_raw_pod("DaemonSet", resourceClaims=[{"name": "gpu"}])).needs.beyond_limit == ""


def resized(asked, allocated, has, *conditions):
    raw = a_raw_pod(containers=[{"name": "main", "resources": {"requests": {"cpu": asked}}}])
    state = {"name": "main", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": has}}}
    raw["status"] = {"containerStatuses": [state], "conditions": list(conditions)}
    return PodReader().read(raw).needs.asked("cpu")


@pytest.mark.parametrize(
    ("asked", "allocated", "has", "cores"),
    [("1", "3", "3", 3), ("1", "1", "3", 3), ("3", "1", "1", 3), ("2", "2000m", "2", 2), ("500m", "1", "750m", 1)],
)
def test_a_pod_that_is_resized_counts_with_the_most_that_it_asks_for_or_holds(asked, allocated, has, cores):
    assert resized(asked, allocated, has) == cores * 1000


@pytest.mark.parametrize(("reason", "cores"), [("Infeasible", 2), ("Deferred", 64)])
def test_a_resize_that_is_infeasible_counts_with_what_the_pod_holds(reason, cores):
    pending = {"type": "PodResizePending", "status": "True", "reason": reason}
    assert resized("64", "2", "2", pending) == cores * 1000


def test_a_status_of_a_container_without_resources_changes_nothing():
    raw = a_raw_pod()
    raw["status"] = {"containerStatuses": [{"name": "main", "ready": True}, {"name": "gone", "resources": {}}]}
    assert PodReader().read(raw).needs.asked("cpu") == 1000
