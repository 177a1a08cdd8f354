"""manifests/cluster-role.yaml allows what the client uses, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from leeward.adapters.kubernetes.answers import Answer
from leeward.adapters.kubernetes.api import ClusterApi
from leeward.model.node import Node, Taint
from leeward.model.pod import Owner, Pod
from leeward.ports.kubernetes import Listed
from tests.adapters.kubernetes_objects import raw_node, raw_pod

DOCUMENTS = list(yaml.safe_load_all(Path("manifests/cluster-role.yaml").read_text()))
NODE, POD = Node.from_json(raw_node()), Pod.from_json(raw_pod())
OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
GROUPS = {
    "/api/v1": "",
    "/apis/apps/v1": "apps",
    "/apis/autoscaling/v2": "autoscaling",
    "/apis/discovery.k8s.io/v1": "discovery.k8s.io",
    "/apis/policy/v1": "policy",
    "/apis/storage.k8s.io/v1": "storage.k8s.io",
}


class Recorder:
    """Stands where the client stands and remembers what RBAC would be asked."""

    cluster = "blue"
    pause_after_conflict = staticmethod(lambda: None)
    now = staticmethod(lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __init__(self):
        self.used = set()

    def _note(self, request):
        group = next(group for path, group in GROUPS.items() if request.path.startswith(f"{path}/"))
        self.used.add((group, request.resource, request.verb))

    def send(self, request):
        self._note(request)
        conflict = request.method in {"DELETE", "PATCH"} or request.resource == "pods/eviction"
        return Answer(status=409 if conflict else 200, body={})

    def ask(self, request):
        self._note(request)
        fresh = {
            "nodes": raw_node(uid="uid-new"),
            "pods": raw_pod(uid="uid-new"),
            "daemonsets": {},
            "replicasets": {"metadata": {"name": "web-5d4", "ownerReferences": [OWNER]}},
            "deployments": {"metadata": {"name": "web"}},
        }
        return fresh[request.resource]

    def list(self, request, parse):
        self._note(request)
        return ()


def read(api):
    api.nodes()
    api.node("node-a")
    api.pods_on("node-a")
    api.budgets()
    api.daemon_sets()
    api.aws_node()
    api.volumes()
    api.attachments()


def gather(api):
    """What decisions about the whole cluster look at beside that."""
    for what in Listed:
        api.read(what, dict)


def act(api):
    with pytest.raises(Exception, match="not there any more"):
        api.taint(NODE, Taint(key="k", effect="NoSchedule"))
    with pytest.raises(Exception, match="not there any more"):
        api.untaint(replace(NODE, taints=(Taint(key="k", effect="NoSchedule"),)), Taint(key="k", effect="NoSchedule"))
    with pytest.raises(Exception, match="not there any more"):
        api.label(NODE, {"leeward.dev/subnet-id": "subnet-a"})
    with pytest.raises(Exception, match="not there any more"):
        api.annotate(NODE, {"leeward.dev/expired": "true"})
    with pytest.raises(Exception, match="not there any more"):
        api.add_finalizer(NODE, "leeward.dev/termination")
    api.remove_finalizer(replace(NODE, finalizers=("leeward.dev/termination",)), "leeward.dev/termination")
    api.strip(replace(NODE, finalizers=("leeward.dev/termination",)), "deployment")
    deployment = api.deployment_of(replace(POD, owner=Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")))
    assert not api.scale(deployment, 2)
    assert api.autoscaled("shop") == frozenset()
    api.evict(POD)
    api.delete_pod(POD)
    api.delete_node(NODE)
    api.event(NODE, reason="R", message="m", warning=False, now=datetime(2026, 1, 1, tzinfo=UTC))


def allowed(role):
    (document,) = [d for d in DOCUMENTS if d["kind"] == "ClusterRole" and d["metadata"]["name"] == role]
    return {
        (group, resource, verb)
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_reading_needs_exactly_the_read_role():
    recorder = Recorder()
    read(ClusterApi(recorder))
    gather(ClusterApi(recorder))
    assert recorder.used == allowed("leeward-read")


def test_acting_needs_exactly_the_act_role():
    recorder = Recorder()
    read(ClusterApi(recorder))
    gather(ClusterApi(recorder))  # an upgrade asks whether an old node's pods fit on new ones
    act(ClusterApi(recorder))
    assert recorder.used == allowed("leeward-act")


def test_each_role_is_bound_to_the_group_that_access_entries_name():
    bound = {
        d["roleRef"]["name"]: [subject["name"] for subject in d["subjects"]]
        for d in DOCUMENTS
        if d["kind"] == "ClusterRoleBinding"
    }
    assert bound == {"leeward-read": ["leeward:read"], "leeward-act": ["leeward:act"]}
