"""Fields of objects that a snapshot writes, and all others, in which a secret may be."""

import base64
import re
from pathlib import Path

import pytest

from leeward.adapters.folder.writer import APPLIED, READ_OF_PODS, kept
from leeward.capture.documents import KUBERNETES
from leeward.drift.reasons import Field
from leeward.drift.template_hash import fields_of
from leeward.model.launch import USER_DATA_LEFT_OUT, LaunchSettings
from leeward.node_template.user_data import kubelet_settings
from leeward.placement.cni import VARIABLES
from local.cluster.schemas import model_named
from tests.fakes.builders import a_policy

SECRET = "hunter2"
GROUPS = {"v1": "core_v1", "policy/v1": "policy_v1", "apps/v1": "apps_v1", "storage.k8s.io/v1": "storage_v1"}
DEEPEST = 12  # levels of a type that contains itself

# Every place of every kind at which a text of its author reaches the folder. Names, labels, selectors and the like are
# what decisions are made from; who adds a place here has asked whether people leave secrets there.
NAMED = {"name", "namespace", "uid", "resourceVersion", "finalizers[]"}
OWNER = {f"ownerReferences[].{key}" for key in ("apiVersion", "kind", "name")}
METADATA = {f"metadata.{path}" for path in NAMED | OWNER}
LABELS = "metadata.labels.*"
EXPRESSION = {"key", "operator", "values[]"}
CONDITION = {f"status.conditions[].{key}" for key in ("message", "reason", "status", "type")}
CONTAINERS = ("containers", "initContainers")
REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))


def selector(at):
    return {f"{at}.matchLabels.*", *(f"{at}.matchExpressions[].{key}" for key in EXPRESSION)}


def node_term(at):
    return {f"{at}.{part}[].{key}" for part in ("matchExpressions", "matchFields") for key in EXPRESSION}


def pod_term(at):
    lists = {f"{at}.{key}" for key in ("topologyKey", "namespaces[]", "matchLabelKeys[]", "mismatchLabelKeys[]")}
    return lists | selector(f"{at}.labelSelector") | selector(f"{at}.namespaceSelector")


def pod_affinity(at):
    return pod_term(f"{at}.{REQUIRED}[]") | pod_term(f"{at}.{PREFERRED}[].podAffinityTerm")


def containers(at):
    found = {f"{at}.ports[].{key}" for key in ("hostIP", "protocol")}
    return found | {f"{at}.resources.{part}.*" for part in ("limits", "requests")} | {f"{at}.restartPolicy"}


def running(part):
    found = {f"status.{part}[].resources.{kind}.*" for kind in ("limits", "requests")}
    return found | {f"status.{part}[].name", f"status.{part}[].allocatedResources.*"}


def pod_spec(at):
    spread = f"{at}.topologySpreadConstraints[]"
    return {
        *(f"{at}.nodeSelector.*", f"{at}.overhead.*", f"{at}.resources.limits.*", f"{at}.resources.requests.*"),
        *(f"{at}.volumes[].name", f"{at}.volumes[].persistentVolumeClaim.claimName", f"{at}.schedulingGates[].name"),
        *(f"{at}.tolerations[].{key}" for key in ("effect", "key", "operator", "value")),
        *(f"{spread}.{key}" for key in ("matchLabelKeys[]", "nodeAffinityPolicy", "nodeTaintsPolicy", "topologyKey")),
        *(f"{spread}.whenUnsatisfiable", *selector(f"{spread}.labelSelector")),
        *node_term(f"{at}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[]"),
        *node_term(f"{at}.affinity.nodeAffinity.{PREFERRED}[].preference"),
        *pod_affinity(f"{at}.affinity.podAffinity"),
        *pod_affinity(f"{at}.affinity.podAntiAffinity"),
        *containers(f"{at}.containers[]"),
        *containers(f"{at}.initContainers[]"),
    }


PLACES = {
    "nodes": {
        *(LABELS, "metadata.annotations.*", "spec.providerID", "status.capacity.*", "status.allocatable.*"),
        *(f"spec.taints[].{key}" for key in ("effect", "key", "value")),
        *("status.nodeInfo.bootID", "status.nodeInfo.kubeletVersion", *CONDITION),
    },
    "pods": {
        *(LABELS, "spec.nodeName", "spec.priorityClassName", "status.phase", *CONDITION, *pod_spec("spec")),
        *(f"spec.{part}[].{key}" for part in CONTAINERS for key in ("name", "restartPolicyRules[].action")),
        *("spec.resourceClaims[].name", *running("containerStatuses"), *running("initContainerStatuses")),
    },
    "pdbs": {
        *selector("spec.selector"),
        *("spec.unhealthyPodEvictionPolicy", "spec.maxUnavailable", "spec.minAvailable"),
        *("status.conditions[].reason", "status.conditions[].message"),
    },
    "daemonsets": {
        *("spec.template.metadata.labels.*", "spec.template.spec.containers[].name"),
        *(f"spec.template.spec.initContainers[].{key}" for key in ("name", "restartPolicyRules[].action")),
        *pod_spec("spec.template.spec"),
    },
    "pvs": {
        *(LABELS, "spec.csi.driver", "spec.claimRef.name", "spec.claimRef.namespace", "status.phase"),
        *node_term("spec.nodeAffinity.required.nodeSelectorTerms[]"),
    },
    "pvcs": {"spec.volumeName", "spec.storageClassName"},
    "volumeattachments": {"spec.nodeName", "spec.source.persistentVolumeName", "status.detachError.message"},
    "storageclasses": {
        *("provisioner", "volumeBindingMode"),
        *(f"allowedTopologies[].matchLabelExpressions[].{key}" for key in ("key", "values[]")),
    },
    "csinodes": {"spec.drivers[].name"},
    "namespaces": {LABELS},
}


def filled(name, depth=0):
    """An object of the type with a secret in every field that takes a text, and in a map of each field that is one."""
    model = model_named(name)
    found = {}
    for key, field in model.fields.items() if depth < DEEPEST else ():
        if field.name in {"int", "float"}:
            value = 1
        elif field.name == "bool":
            value = True
        elif field.name == "dict":
            value = {SECRET: SECRET, APPLIED: SECRET}
        elif model_named(field.name) is not None:
            value = filled(field.name, depth + 1)
        else:
            value = "2026-11-27T10:00:00Z" if field.name == "Time" else SECRET
        found[key] = [value] if field.is_list else value
    return found


def places(value, path=""):
    """Paths at which the secret is; `*` stands for the keys of a map."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, f"{path}.{'*' if key in (SECRET, APPLIED) else key}".removeprefix("."))
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner, f"{path}[]")
    elif SECRET in str(value):
        yield path


@pytest.mark.parametrize("file", KUBERNETES)
def test_a_text_reaches_the_folder_at_the_places_that_decisions_read_alone(file):
    _, api_version, kind = KUBERNETES[file]
    raw = filled(f"{GROUPS[api_version]}.{kind}")
    assert len(set(places(raw))) > 20
    left = set(places(kept(file, raw))) - METADATA - {"kind", "apiVersion"}
    assert left == PLACES[file]


def a_pod(**notes):
    meta = {"name": "p", "namespace": "shop", "annotations": notes, "managedFields": [{}], "labels": {"app": "web"}}
    return {"metadata": meta, "spec": {"nodeName": "n", "containers": [{"name": "c", "env": [{"name": "A"}]}]}}


def a_daemon_set(name, namespace="kube-system"):
    variables = [{"name": one, "value": "3"} for one in ("WARM_IP_TARGET", "HTTPS_PROXY")]
    template = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": name, "env": variables}]}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}


def variables(name, **where):
    (container,) = kept("daemonsets", a_daemon_set(name, **where))["spec"]["template"]["spec"]["containers"]
    return container.get("env")


def test_a_pod_keeps_the_annotations_that_decisions_read():
    read = dict.fromkeys(READ_OF_PODS, "true")
    assert kept("pods", a_pod(**read, note=SECRET))["metadata"]["annotations"] == read
    assert "annotations" not in kept("pods", a_pod(note=SECRET))["metadata"]


def test_every_annotation_that_decisions_read_of_a_pod_is_known():
    assert set(READ_OF_PODS) == {
        "leeward.dev/do-not-disrupt",
        "leeward.dev/disruption-window",
        "karpenter.sh/do-not-disrupt",
        "karpenter.sh/do-not-evict",
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
        "controller.kubernetes.io/pod-deletion-cost",
        "kubernetes.io/config.mirror",
    }


def test_no_other_package_reads_annotations_of_pods():
    """Who begins to read another one names it in READ_OF_PODS, or offline commands would not see it."""
    known = {"disruption/do_not_disrupt.py", "disruption/candidates.py", "model/pod.py", "scheduling/pods.py"}
    of_nodes = {"model/node.py", "cli/report/facts.py"}
    of_services = {"model/load_balancing.py"}
    of_drains = {"termination/drain_reports.py"}  # reads what it wrote itself; no offline command evicts
    written = {"adapters/folder/writer.py"}
    root = Path("functions/leeward")
    reads = re.compile(r"pod\w*\.annotations|get\(\"annotations\"\)|self\.annotations")
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if reads.search(path.read_text())}
    assert found == known | of_nodes | of_services | of_drains | written


def test_the_cnis_own_daemon_set_keeps_its_settings_alone():
    assert variables("aws-node") == [{"name": "WARM_IP_TARGET", "value": "3"}]
    assert variables("aws-node", namespace="mine") is None
    assert variables("agent") is None
    assert {"MAX_ENI", "ENABLE_PREFIX_DELEGATION", "ENABLE_SUBNET_DISCOVERY"} <= VARIABLES


def test_a_node_keeps_its_annotations_but_not_its_manifest():
    raw = {"metadata": {"name": "n", "annotations": {"team": "web", APPLIED: SECRET}}, "spec": {}}
    assert kept("nodes", raw)["metadata"]["annotations"] == {"team": "web"}


@pytest.mark.parametrize("spec", [[], "text", {"containers": "none", "volumes": [[SECRET]], "nodeName": {"a": SECRET}}])
def test_what_is_of_another_shape_takes_nothing_with_it(spec):
    assert SECRET not in str(kept("pods", {**a_pod(), "spec": spec}))


def test_nothing_is_changed_in_place():
    for file, raw in (("pods", a_pod(note=SECRET)), ("daemonsets", a_daemon_set("aws-node"))):
        before = str(raw)
        kept(file, raw)
        assert str(raw) == before


USER_DATA = base64.b64encode(b"#!/bin/sh\n/etc/eks/bootstrap.sh blue --kubelet-extra-args '--max-pods=20'\n").decode()
VERSION = {
    "LaunchTemplateId": "lt-1",
    "VersionNumber": 1,
    "LaunchTemplateData": {"UserData": USER_DATA, "ImageId": "a"},
}
CONFIGURATION = {"LaunchConfigurationName": "c", "UserData": USER_DATA, "ImageId": "a"}


@pytest.mark.parametrize(
    ("file", "raw"), [("launch-template-versions", VERSION), ("launch-configurations", CONFIGURATION)]
)
def test_user_data_stays_unless_it_is_to_be_left_out(file, raw):
    assert kept(file, raw) == raw
    reduced = kept(file, raw, user_data=False)
    assert USER_DATA not in str(reduced)
    assert str(reduced).replace(USER_DATA_LEFT_OUT, USER_DATA) == str(raw)


def test_a_template_without_user_data_is_not_said_to_have_had_some():
    raw = {"LaunchTemplateId": "lt-1", "LaunchTemplateData": {"ImageId": "a"}}
    assert kept("launch-template-versions", raw, user_data=False) == raw


def test_what_follows_from_user_data_that_was_left_out_is_unknown():
    launch = LaunchSettings.from_template(kept("launch-template-versions", VERSION, user_data=False))
    assert not {Field.USER_DATA, Field.KUBELET} & fields_of(launch, a_policy()).keys()
    assert Field.BLOCK_DEVICES in fields_of(launch, a_policy())
    found = kubelet_settings(launch.user_data)
    assert found.max_pods is None
    assert "left out of the snapshot" in found.warnings[0]
