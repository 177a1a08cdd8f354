"""A cluster that a kubeconfig names, in place of the emulated one: here an emulator, used as if it were foreign.

Its own kubelets never start or end a pod here, so whatever runs was started by the kubelets under test.
"""

import base64
import time
from pathlib import Path

import pytest
import urllib3
import yaml

from local.cluster.bridge import BridgeSettings, NodeBridge
from local.cluster.errors import ApiError
from local.cluster.instances import Instance
from local.cluster.nodes import NodeSpec
from local.cluster.objects import is_ready
from local.cluster.server import ClusterServer
from local.cluster.settings import ClusterSettings
from local.fleet import budget, deployment
from local.foreign.api import ApiClient
from local.foreign.contents import NotEmptyError
from local.foreign.kubeconfig import Access, KubeconfigError, read
from local.foreign.server import ForeignCluster
from local.workloads import path_of

pytestmark = pytest.mark.local

ROLE = "arn:aws:iam::000000000000:role/reader"
SESSION = "arn:aws:sts::000000000000:assumed-role/reader/function"


class Aws:
    """Two running instances, until one is terminated."""

    def __init__(self):
        self.running = ["i-1", "i-2"]

    def list_instances(self):
        return [
            Instance(
                instanceId=name,
                zone="us-east-1a",
                subnetId="subnet-1",
                instanceType="m5.large",
                privateDnsName=f"{name}.internal",
                state="running",
                launchTime=0.0,
                tags={},
                lifecycle=None,
            )
            for name in self.running
        ]


class Given:
    """The cluster behind the proxy, as the stack uses it, and the emulator behind both, as its owner sees it."""

    def __init__(self, cluster: ForeignCluster, owner: ApiClient, folder: Path):
        self.cluster, self.owner = cluster, owner
        cluster.write_files(folder / "stack")
        token = (folder / "stack" / "admin-token").read_text()
        ca = (folder / "stack" / "ca.crt").read_text()
        self.url, self.ca = cluster.url, ca
        self.stack = ApiClient(Access(context="", url=cluster.url, ca=ca, token=token))
        self.aws = Aws()
        settings = BridgeSettings(boot_delay=0, ready_delay=0, notice_delay=0, removal_delay=0)
        self.bridge = NodeBridge(nodes=cluster.nodes, source=self.aws, settings=settings)

    def until(self, condition, what):
        deadline = time.monotonic() + 60
        while not (found := condition()):
            assert time.monotonic() < deadline, what
            self.bridge.poll(time.time())
            time.sleep(0.05)
        return found

    def apply(self, *objects):
        for thing in objects:
            self.stack.call("PATCH", f"{path_of(thing)}?fieldManager=local", thing, kind="application/apply-patch+yaml")

    def as_iam(self, session=SESSION):
        url = "https://sts/?Action=GetCallerIdentity&X-Amz-SignedHeaders=host;x-k8s-aws-id&X-Amz-Signature=a"
        url += f"&X-Amz-Date={time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}&as={session}"
        token = "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        return ApiClient(Access(context="", url=self.url, ca=self.ca, token=token))

    def nodes(self):
        return self.owner.call("GET", "/api/v1/nodes")["items"]

    def pods(self):
        return self.owner.call("GET", "/api/v1/namespaces/default/pods")["items"]

    def leases(self):
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        return {lease["metadata"]["name"] for lease in self.owner.call("GET", path)["items"]}

    def ready_pods(self, count):
        return lambda: [pod for pod in self.pods() if is_ready(pod)] if sum(map(is_ready, self.pods())) == count else []


@pytest.fixture
def server(tmp_path):
    settings = ClusterSettings(pod_start=1e6, termination_scale=1e6, pod_gc_period=0, pod_gc_quarantine=0.1)
    with ClusterServer(name="theirs", settings=settings) as server:
        server.write_files(tmp_path / "theirs")
        yield server


def foreign(folder: Path) -> ForeignCluster:
    return ForeignCluster(
        name="demo",
        kubeconfig=folder / "theirs" / "kubeconfig",
        port=0,
        identify=lambda url, _cluster: url.rpartition("as=")[2],
        pod_start=0.0,
        scale=0.0,
    )


@pytest.fixture
def given(server, tmp_path):
    with foreign(tmp_path) as cluster:
        yield Given(cluster, ApiClient(read(tmp_path / "theirs" / "kubeconfig")), tmp_path)


def test_instances_join_run_pods_and_leave_with_their_nodes(given):
    given.apply(deployment("web", 4))
    given.until(given.ready_pods(4), "four pods Ready on nodes of local instances")
    assert {node["spec"]["providerID"] for node in given.nodes()} == {"aws:///us-east-1a/i-1", "aws:///us-east-1a/i-2"}
    given.until(lambda: given.leases() == {"i-1.internal", "i-2.internal"}, "the Lease of each node is renewed")
    given.aws.running.remove("i-2")
    given.until(lambda: len(given.nodes()) == 1, "the terminated instance's node is deleted")
    given.until(given.ready_pods(4), "its pods run on the other node")


def test_an_iam_principal_acts_with_the_groups_of_its_access_entry_and_no_more(given):
    reader = given.as_iam()
    with pytest.raises(ApiError) as unknown:
        reader.call("GET", "/api/v1/nodes")
    assert unknown.value.code == 401
    entries = [{"principalArn": ROLE, "kubernetesGroups": ["readers"], "username": "reader"}]
    given.stack.call("PUT", "/_local/access-entries", entries)
    with pytest.raises(ApiError, match='User "reader" cannot list resource "nodes"'):
        reader.call("GET", "/api/v1/nodes")
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "nodes"}}
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
    subject = {"kind": "Group", "name": "readers", "apiGroup": rbac}
    reference = {"kind": "ClusterRole", "name": "nodes", "apiGroup": rbac}
    given.apply(
        {**role, "rules": [rule]}, {**role, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference}
    )
    assert reader.call("GET", "/api/v1/nodes")["kind"] == "NodeList"
    with pytest.raises(ApiError) as refused:
        reader.call("DELETE", "/api/v1/nodes/i-1.internal")
    assert refused.value.code == 403
    with pytest.raises(ApiError, match="may not use"):
        reader.call("PUT", "/_local/access-entries", [])


def test_evictions_refusals_and_broken_budgets_are_recorded(given):
    given.apply(deployment("web", 2), budget("web", maxUnavailable=1))
    first, second = given.until(given.ready_pods(2), "two pods")
    given.until(lambda: allowed(given) == 1, "the budget allows one")
    names = [pod["metadata"]["name"] for pod in (first, second)]
    evict(given, names[0])
    given.until(lambda: names[0] not in [pod["metadata"]["name"] for pod in given.pods()], "the evicted pod is gone")
    given.until(given.ready_pods(2), "a new pod")
    given.stack.call("PATCH", f"{BUDGETS}/web", {"spec": {"maxUnavailable": 0}}, kind="application/merge-patch+json")
    given.until(lambda: allowed(given) == 0, "the budget allows none")
    with pytest.raises(ApiError) as refused:
        evict(given, names[1])
    assert refused.value.code == 429
    assert given.stack.call("GET", "/_local/pdb-violations") == []
    given.stack.call("DELETE", f"/api/v1/namespaces/default/pods/{names[1]}")  # not asked of the budget
    (broken,) = given.until(lambda: given.stack.call("GET", "/_local/pdb-violations"), "the violation is recorded")
    assert (broken["pod"], broken["cause"], broken["currentHealthy"]) == (f"default/{names[1]}", "delete", 1)
    facts = given.stack.call("GET", "/_local/history")
    kinds = {(fact["kind"], fact["object"]) for fact in facts}
    assert ("eviction-accepted", f"default/{names[0]}") in kinds
    assert ("eviction-refused", f"default/{names[1]}") in kinds
    assert {"node-created", "node-ready", "pod-started", "pod-ready", "pod-deleted"} <= {kind for kind, _ in kinds}


BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def allowed(given):
    return given.owner.call("GET", f"{BUDGETS}/web").get("status", {}).get("disruptionsAllowed")


def evict(given, name):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    given.stack.call("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body)


def test_the_cluster_is_as_empty_at_the_end_as_it_was_at_the_start(server, tmp_path):
    owner = ApiClient(read(tmp_path / "theirs" / "kubeconfig"))
    for _ in range(2):
        with foreign(tmp_path) as cluster:
            given = Given(cluster, owner, tmp_path)
            given.apply(deployment("web", 2), budget("web", maxUnavailable=1))
            given.until(given.ready_pods(2), "two pods")
        for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/apps/v1/deployments", BUDGETS):
            assert owner.call("GET", path)["items"] == []


def test_a_cluster_in_use_is_refused_and_named(server, tmp_path):
    with server.lock:
        server.model.add_node(NodeSpec(name="worker", instance_id="i-0"))
        control = NodeSpec(name="plane", labels={"node-role.kubernetes.io/control-plane": ""})
        server.model.add_node(control)
        server.model.create("deployments", deployment("shop", 1), "default")
        server.model.create("poddisruptionbudgets", budget("shop", minAvailable=1), "default")
    with pytest.raises(NotEmptyError) as refused, foreign(tmp_path):
        pass
    text = str(refused.value)
    assert "node worker" in text
    assert "kubectl cordon plane" in text
    assert "pods in namespace default" in text
    assert "PodDisruptionBudgets in namespace default" in text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda document: document.pop("current-context"), "current-context"),
        (lambda document: document["users"][0].update(user={"exec": {"command": "aws"}}), "exec"),
        (lambda document: document.update(clusters=None), "NoneType"),
    ],
)
def test_a_kubeconfig_that_does_not_do_is_explained(server, tmp_path, change, words):
    document = yaml.safe_load((tmp_path / "theirs" / "kubeconfig").read_text())
    change(document)
    (tmp_path / "broken").write_text(yaml.safe_dump(document))
    with pytest.raises(KubeconfigError, match=words):
        read(tmp_path / "broken")


def test_an_api_server_that_is_away_answers_503_at_the_proxy(given, monkeypatch):
    def refuse(*_arguments):
        raise urllib3.exceptions.ProtocolError("connection refused")

    with monkeypatch.context() as away:
        away.setattr(given.cluster._api, "send", refuse)
        with pytest.raises(ApiError, match="the given API server: connection refused") as answered:
            given.stack.call("GET", "/api/v1/nodes")
    assert answered.value.code == 503
    assert given.stack.call("GET", "/api/v1/nodes")["kind"] == "NodeList"
