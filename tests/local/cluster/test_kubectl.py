"""Real kubectl, every version at hand, against the served cluster.

kubectl drain sleeps for five seconds after each refusal, so the versions run their scenarios side by side and each
test reads the outcome of its own.
"""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from local.cluster.nodes import NodeSpec
from local.cluster.objects import Obj
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from tests.local.cluster.builders import a_budget, a_daemonset, a_job, a_stateful_set, a_workload
from tests.local.cluster.kubectl import Kubectl, binaries
from tests.tools import need

BINARIES = binaries()
MIDDLE = BINARIES[2:-1]  # between the oldest and the newest beside the one on PATH
STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", **a_stateful_set(replicas=2, grace=1)}
JOB = {"apiVersion": "batch/v1", "kind": "Job", **a_job(seconds=0.1, spec={"completions": 2})}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}


class Scenario:
    """One version, one cluster: three nodes, three replicas under a budget, an agent on every node."""

    def __init__(self, binary: Path, home: Path) -> None:
        settings = ClusterSettings(
            pod_start=0.05, termination_scale=0.01, volume_attach=0.05, volume_detach=0.1, node_leases=True
        )
        self.server = ClusterServer(settings=settings)
        self.kubectl = Kubectl(binary=binary, home=home, kubeconfig=home / "kubeconfig")

    def prepare(self) -> None:
        self.server.write_files(self.kubectl.home)
        with self.server.lock:
            model = self.server.model
            for index in range(3):
                model.add_node(NodeSpec(name=f"n{index}", zone=f"us-east-1{'abc'[index]}"))
            model.create("deployments", a_workload(replicas=3))
            model.create("daemonsets", a_daemonset(), "kube-system")
            model.create("poddisruptionbudgets", a_budget(maxUnavailable=0))
        self.kubectl.ok("wait", "--for=condition=Available", "deployment/web", "--timeout=180s")
        self.kubectl.ok("rollout", "status", "daemonset/agent", "-n", "kube-system", "--timeout=180s")

    def pods_on(self, node: str) -> list[Obj]:
        with self.server.lock:
            return self.server.model.list("pods", fields=f"spec.nodeName={node}")


def scenario(binary: Path, home: Path) -> str:
    """All of it, in an order that depends on itself; raises AssertionError where kubectl and the cluster disagree."""
    run = Scenario(binary, home)
    with run.server:
        run.prepare()
        looks(run)
        edits(run)
        creates(run)
        explains(run)
        keeps_state(run)
        watches(run)
        drains(run)
    return "done"


def looks(run: Scenario) -> None:
    kubectl = run.kubectl
    nodes = kubectl.ok("get", "nodes", "-o", "wide").splitlines()
    assert nodes[0].split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert nodes[1].split()[:2] == ["n0", "Ready"]
    pods = kubectl.ok("get", "pods", "-A", "--field-selector", "spec.nodeName=n0")
    assert "1/1" in pods
    assert "agent-" in pods
    budget = kubectl.ok("get", "pdb", "web").splitlines()
    assert budget[1].split()[:4] == ["web", "N/A", "0", "0"]
    assert kubectl.ok("get", "deployment,rs", "-l", "app=web").count("web") >= 1
    assert kubectl.ok("get", "ds", "-A").splitlines()[1].split()[2:5] == ["3", "3", "3"]
    described = kubectl.ok("describe", "node", "n0")
    assert "Non-terminated Pods:          (2 in total)" in described
    pod = kubectl.ok("get", "pods", "-l", "app=web", "-o", "name").split()[0]
    assert "Successfully assigned" in kubectl.ok("describe", pod)
    assert "SuccessfulCreate" in kubectl.ok("get", "events", "--sort-by=.metadata.creationTimestamp")
    assert kubectl.ok("auth", "can-i", "create", "pods/eviction").strip().endswith("yes")
    assert "poddisruptionbudgets" in kubectl.ok("api-resources")
    missing = kubectl.run("get", "pod", "absent")
    assert (missing.code, 'pods "absent" not found' in missing.text) == (1, True)


def edits(run: Scenario) -> None:
    kubectl, model = run.kubectl, run.server.model
    kubectl.ok("label", "node", "n0", "team=web")
    kubectl.ok("annotate", "node", "n0", "leeward.dev/note=some text")
    kubectl.ok("taint", "node", "n0", "leeward.dev/disrupted=:NoSchedule")
    node = model.get("nodes", "n0")
    assert node["metadata"]["labels"]["team"] == "web"
    assert node["metadata"]["annotations"]["leeward.dev/note"] == "some text"
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["leeward.dev/disrupted"]
    kubectl.ok("taint", "node", "n0", "leeward.dev/disrupted-")
    kubectl.ok("label", "node", "n0", "team-")
    assert "team" not in model.get("nodes", "n0")["metadata"]["labels"]
    assert "taints" not in model.get("nodes", "n0")["spec"]
    assert "created" in kubectl.ok("apply", "-f", "-", text=json.dumps(CONFIG_MAP))
    changed = {**CONFIG_MAP, "data": {"b": "2"}}
    assert "configured" in kubectl.ok("apply", "-f", "-", text=json.dumps(changed))
    assert model.get("configmaps", "settings")["data"] == {"b": "2"}
    assert "unchanged" in kubectl.ok("apply", "-f", "-", text=json.dumps(changed))
    assert "serverside-applied" in kubectl.ok(
        "apply", "--server-side", "--force-conflicts", "-f", "-", text=json.dumps(changed)
    )
    kubectl.ok("patch", "configmap", "settings", "--type=merge", "-p", '{"data": {"c": "3"}}')
    kubectl.ok("delete", "configmap", "settings")
    assert model.store.find("configmaps", "settings", "default") is None
    assert "created" in kubectl.ok("create", "-f", "-", text=json.dumps(CONFIG_MAP))
    assert "replaced" in kubectl.ok("replace", "-f", "-", text=json.dumps(changed))
    kubectl.ok("scale", "deployment", "web", "--replicas=4")
    available(kubectl, 4)
    kubectl.ok("scale", "deployment", "web", "--replicas=3")
    pod = kubectl.ok("get", "pods", "-n", "kube-system", "-o", "name").split()[0]
    kubectl.ok("delete", pod, "-n", "kube-system", "--timeout=180s")


def creates(run: Scenario) -> None:
    """Objects that kubectl makes from its arguments, which some versions send as protobuf."""
    kubectl, model = run.kubectl, run.server.model
    kubectl.ok("create", "namespace", "made")
    kubectl.ok("create", "configmap", "literal", "--from-literal=colour=red")
    assert model.get("configmaps", "literal")["data"] == {"colour": "red"}
    kubectl.ok("create", "secret", "generic", "hidden", "--from-literal=word=pass")
    assert model.get("secrets", "hidden")["data"] == {"word": "cGFzcw=="}
    kubectl.ok("create", "deployment", "front", "--image=nginx", "--replicas=2", "--port=80")
    kubectl.ok("wait", "--for=condition=Available", "deployment/front", "--timeout=180s")
    made = model.get("deployments", "front")["spec"]
    assert (made["replicas"], made["selector"]) == (2, {"matchLabels": {"app": "front"}})
    (container,) = made["template"]["spec"]["containers"]
    assert (container["image"], container["ports"]) == ("nginx", [{"containerPort": 80}])
    assert "exposed" in kubectl.ok("expose", "deployment", "front", "--port=80", "--target-port=http")
    (port,) = model.get("services", "front")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (80, "http")
    kubectl.ok("create", "job", "once", "--image=busybox", "--", "date", "+%s")
    (container,) = model.get("jobs", "once")["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["date", "+%s"]
    kubectl.ok("create", "pdb", "front", "--selector=app=front", "--max-unavailable=50%")
    assert model.get("poddisruptionbudgets", "front")["spec"]["maxUnavailable"] == "50%"
    kubectl.ok("create", "role", "look", "--verb=get,list", "--resource=pods")
    kubectl.ok("create", "rolebinding", "look", "--role=look", "--user=alice")
    kubectl.ok(
        "delete", "deployment/front", "service/front", "job/once", "pdb/front", "namespace/made", "--timeout=180s"
    )
    assert model.store.find("namespaces", "made") is None


def explains(run: Scenario) -> None:
    """What the server says about its types, itself, the user and its nodes."""
    kubectl = run.kubectl
    explained = kubectl.ok("explain", "node.spec.taints")
    assert "KIND:" in explained
    assert "Required. The effect of the taint on pods" in explained
    assert "minReadySeconds" in kubectl.ok("explain", "deployment.spec")
    if kubectl.minor >= 28:  # before, kubectl knew only the beta of this API
        assert "kubernetes-admin" in kubectl.ok("auth", "whoami")
    kubectl.ok("get", "ep")
    assert kubectl.ok("get", "componentstatuses").count("Healthy") == 3
    described = " ".join(kubectl.ok("describe", "node", "n0").split())
    assert "Lease: HolderIdentity: n0" in described
    assert "RegisteredNode" in described


def keeps_state(run: Scenario) -> None:
    """StatefulSets with their volumes, and Jobs."""
    kubectl, model = run.kubectl, run.server.model
    assert "created" in kubectl.ok("create", "-f", "-", text=json.dumps(STATEFUL_SET))
    kubectl.ok("rollout", "status", "statefulset/db", "--timeout=180s")
    assert kubectl.ok("get", "sts", "db").splitlines()[1].split()[:2] == ["db", "2/2"]
    claim = kubectl.ok("get", "pvc", "data-0-db-0").splitlines()[1].split()
    assert (claim[1], claim[3:6]) == ("Bound", ["8Gi", "RWO", "gp3"])
    volume = kubectl.ok("get", "pv").splitlines()[1].split()
    assert volume[1:6] == ["8Gi", "RWO", "Delete", "Bound", f"default/{volume[5].removeprefix('default/')}"]
    assert "ebs.csi.aws.com" in kubectl.ok("describe", "pv", volume[0])
    assert kubectl.ok("get", "volumeattachments").count("ebs.csi.aws.com") == 2
    assert "gp3 (default)" in kubectl.ok("get", "sc")
    assert "Pods Status:" in kubectl.ok("describe", "sts", "db")
    assert "db-0" in kubectl.ok("describe", "pvc", "data-0-db-0")
    before = model.get("pods", "db-0")["metadata"]["uid"]
    kubectl.ok("rollout", "restart", "statefulset/db")
    kubectl.ok("rollout", "status", "statefulset/db", "--timeout=180s")
    assert model.get("pods", "db-0")["metadata"]["uid"] != before
    kubectl.ok("scale", "sts", "db", "--replicas=1")
    kubectl.ok("wait", "--for=delete", "pod/db-1", "--timeout=180s")
    kubectl.ok("delete", "sts", "db")
    assert "created" in kubectl.ok("create", "-f", "-", text=json.dumps(JOB))
    kubectl.ok("wait", "--for=condition=Complete", "job/sums", "--timeout=180s")
    assert "2/2" in kubectl.ok("get", "job", "sums")
    assert "2 Succeeded" in kubectl.ok("describe", "job", "sums")
    kubectl.ok("delete", "job", "sums")


def available(kubectl: Kubectl, replicas: int) -> None:
    """What `kubectl wait --for=jsonpath=…` says in versions that know it."""
    deadline = time.monotonic() + 180
    while kubectl.ok("get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}") != str(replicas):
        assert time.monotonic() < deadline, f"not {replicas} replicas within 180 s"
        time.sleep(0.2)
    kubectl.ok("wait", "--for=condition=Available", "deployment/web", "--timeout=180s")


def watches(run: Scenario) -> None:
    """`get -w` shows what is there, then a cordon as it happens."""
    kubectl = run.kubectl
    process = subprocess.Popen(
        [kubectl.binary, "get", "nodes", "--watch"], env=kubectl.environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for _ in range(4):  # the header and three nodes
            process.stdout.readline()
        kubectl.ok("cordon", "n2")
        assert "Ready,SchedulingDisabled" in process.stdout.readline()
    finally:
        process.kill()
        process.communicate()
    kubectl.ok("uncordon", "n2")
    assert run.server.model.get("nodes", "n2")["spec"].get("unschedulable") in (None, False)


def drains(run: Scenario) -> None:
    kubectl, model = run.kubectl, run.server.model
    evictable = [pod["metadata"]["name"] for pod in run.pods_on("n0") if pod["metadata"]["labels"]["app"] == "web"]
    assert evictable
    blocked = kubectl.run("drain", "n0", "--ignore-daemonsets", "--timeout=8s")
    assert blocked.code == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget." in blocked.text
    assert "global timeout reached" in blocked.text
    assert {name for name in evictable if model.store.find("pods", name, "default")} == set(evictable)
    dry = kubectl.ok("drain", "n0", "--ignore-daemonsets", "--dry-run=client")
    assert "dry run" in dry
    kubectl.ok("patch", "pdb", "web", "-p", '{"spec": {"maxUnavailable": 3}}')
    drained = kubectl.ok("drain", "n0", "--ignore-daemonsets", "--timeout=180s")
    assert drained.rstrip().endswith(("node/n0 drained", "node/n0 evicted"))  # the word before and since 1.23
    assert [pod["metadata"]["labels"]["app"] for pod in run.pods_on("n0")] == ["agent"]
    available(kubectl, 3)
    where = {pod["spec"]["nodeName"] for pod in model.list("pods", labels="app=web")}
    assert where <= {"n1", "n2"}
    assert model.history.violations() == []
    kubectl.ok("uncordon", "n0")
    kubectl.ok("delete", "node", "n0")
    assert model.store.find("nodes", "n0") is None


VERSIONS = [pytest.param(one, marks=[pytest.mark.long] if one in MIDDLE else [], id=one.name) for one in BINARIES]


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """The scenario of every version that is tried, started side by side."""
    mine = [item for item in request.session.items if item.module is request.module]
    tried = [item.callspec.params["binary"] for item in mine if item.callspec.params["binary"] is not None]
    pool = ThreadPoolExecutor(max_workers=max(1, len(tried)))
    started: dict[Path, Future[str]] = {
        binary: pool.submit(scenario, binary, tmp_path_factory.mktemp(binary.name)) for binary in tried
    }
    yield started
    pool.shutdown()


@pytest.mark.parametrize("binary", VERSIONS or [pytest.param(None, id="none found")])
def test_this_kubectl_looks_edits_watches_and_drains(outcomes, binary):
    need("kubectl")
    assert outcomes[binary].result(timeout=900) == "done"
