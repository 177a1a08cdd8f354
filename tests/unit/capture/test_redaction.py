"""What is kept of Kubernetes objects, and what is not."""

import re
from pathlib import Path

from leeward.capture.redaction import APPLIED, kept
from leeward.ports.kubernetes import Listed


def a_container(**fields):
    return {"name": "c", "image": "i", "env": [{"name": "A", "value": "secret"}], "args": ["secret"], **fields}


def a_pod(**spec):
    notes = {"note": "secret", APPLIED: "secret", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    meta = {"name": "p", "namespace": "shop", "annotations": notes, "managedFields": [{}], "labels": {"app": "web"}}
    return {"metadata": meta, "spec": {"nodeName": "n", **spec}}


def pod(**spec):
    return kept(Listed.PODS, "v1", "Pod", a_pod(**spec))


def a_daemon_set(name, namespace="kube-system"):
    template = {"metadata": {"labels": {}}, "spec": {"containers": [a_container(name=name)]}}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"template": template}}


def variables(name, **where):
    found = kept(Listed.DAEMON_SETS, "apps/v1", "DaemonSet", a_daemon_set(name, **where))
    return found["spec"]["template"]["spec"]["containers"][0]["env"]


def test_every_kind_of_container_loses_its_values():
    kinds = ("containers", "initContainers", "ephemeralContainers")
    found = pod(**{kind: [a_container(lifecycle={"preStop": "secret"})] for kind in kinds})
    assert "secret" not in str(found)
    for kind in kinds:
        assert found["spec"][kind] == [{"name": "c", "image": "i", "env": [{"name": "A"}]}]


def test_variables_that_point_elsewhere_keep_where():
    source = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    assert pod(containers=[a_container(env=[source])])["spec"]["containers"][0]["env"] == [source]


def test_a_pod_keeps_the_annotations_that_decisions_read():
    found = pod()["metadata"]
    assert found["annotations"] == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    assert (found["labels"], "managedFields" in found) == ({"app": "web"}, False)


def test_every_annotation_that_decisions_read_of_a_pod_is_kept():
    notes = {
        "leeward.dev/do-not-disrupt": "1h",
        "leeward.dev/disruption-window": "0 14 * * 6/3h",
        "karpenter.sh/do-not-disrupt": "true",
        "karpenter.sh/do-not-evict": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "controller.kubernetes.io/pod-deletion-cost": "7",
        "kubernetes.io/config.mirror": "x",
    }
    raw = a_pod()
    raw["metadata"]["annotations"] = notes
    assert kept(Listed.PODS, "v1", "Pod", raw)["metadata"]["annotations"] == notes


def test_no_other_package_reads_annotations_of_pods():
    """Who begins to read another one names it in READ_OF_PODS, or offline commands would not see it."""
    known = {"disruption/do_not_disrupt.py", "disruption/candidates.py", "model/pod.py", "scheduling/pods.py"}
    of_nodes = {"model/node.py", "cli/report/facts.py"}
    of_drains = {"termination/pod_notice.py"}  # reads what it wrote itself; no offline command evicts
    root = Path("functions/leeward")
    reads = re.compile(r"pod\w*\.annotations|get\(\"annotations\"\)|self\.annotations")
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if reads.search(path.read_text())}
    assert found == known | of_nodes | of_drains


def test_only_the_cnis_own_daemon_set_keeps_its_variables():
    assert variables("aws-node") == [{"name": "A", "value": "secret"}]
    assert variables("aws-node", namespace="mine") == [{"name": "A"}]
    assert variables("agent") == [{"name": "A"}]


def test_a_node_keeps_its_annotations_but_not_its_manifest():
    raw = {"metadata": {"name": "n", "annotations": {"team": "web", APPLIED: "secret"}}, "spec": {}}
    found = kept(Listed.NODES, "v1", "Node", raw)
    assert found["metadata"]["annotations"] == {"team": "web"}
    assert (found["apiVersion"], found["kind"]) == ("v1", "Node")


def test_nothing_is_changed_in_place():
    raw = a_pod(containers=[a_container()])
    before = str(raw)
    kept(Listed.PODS, "v1", "Pod", raw)
    assert str(raw) == before
