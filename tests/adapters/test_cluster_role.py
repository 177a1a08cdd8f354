"""The ClusterRoles of manifests/ allow what the client uses, and nothing else.

Which function uses which call is recorded in the simulation (tests/simulation/test_cluster_roles.py)."""

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

DOCUMENTS = [one for path in Path("manifests").glob("*.yaml") for one in yaml.safe_load_all(path.read_text())]
RULES = {
    document["metadata"]["name"]: {
        (group, resource, verb)
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    for document in DOCUMENTS
    if document["kind"] == "ClusterRole"
}
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
    for_seconds = lambda self, _: self  # noqa: E731
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


def plan(api):
    """What decisions about the whole cluster look at."""
    api.nodes()
    api.node("node-a")
    api.pods_on("node-a")
    api.pods()
    api.budgets()
    api.daemon_sets()
    api.aws_node()
    for what in Listed:
        if what is not Listed.ATTACHMENTS:
            api.read(what, dict)


def find_volumes(api):
    """What a drain waits for after the last eviction."""
    api.volumes()
    api.attachments()


def report(api):
    """List the Events that `leeward report` draws."""
    api.seen_events(dict, "involvedObject.kind=Node")


def taint(api):
    """What interruption, sync, reconciler, upgrades and disruptions change."""
    with pytest.raises(Exception, match="not there any more"):
        api.taint(NODE, Taint(key="k", effect="NoSchedule"))
    with pytest.raises(Exception, match="not there any more"):
        api.untaint(replace(NODE, taints=(Taint(key="k", effect="NoSchedule"),)), Taint(key="k", effect="NoSchedule"))
    with pytest.raises(Exception, match="not there any more"):
        api.cordon(NODE, "upgrade")
    with pytest.raises(Exception, match="not there any more"):
        api.label(NODE, {"leeward.dev/subnet-id": "subnet-a"})
    with pytest.raises(Exception, match="not there any more"):
        api.annotate(NODE, {"leeward.dev/expired": "true"})
    with pytest.raises(Exception, match="not there any more"):
        api.add_finalizer(NODE, "leeward.dev/termination")
    api.remove_finalizer(replace(NODE, finalizers=("leeward.dev/termination",)), "leeward.dev/termination")
    api.strip(replace(NODE, finalizers=("leeward.dev/termination",)), "deployment")
    api.event(NODE, reason="R", message="m", warning=False, now=datetime(2026, 1, 1, tzinfo=UTC))


def drain(api):
    """What a drain does."""
    api.nodes()
    api.node("node-a")
    api.pods_on("node-a")
    api.budgets("shop")
    api.daemon_sets()
    api.daemon_sets(among=frozenset({"kube-system/aws-node"}))
    find_volumes(api)
    api.read(Listed.SERVICES, dict)  # settle: auto
    taint(api)
    api.evict(POD)
    api.delete_pod(POD)
    api.annotate_pods([POD], {"leeward.dev/terminates-at": "2026-01-01T00:00:00Z"})()
    api.delete_node(NODE)


def find_lone_pods(api):
    """What says that a pod is the only one of its Deployment."""
    assert api.autoscaled("shop") == frozenset()
    return api.deployment_of(replace(POD, owner=Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d4")))


def surge(api):
    """What `drain.singleReplicas: surge` does."""
    assert not api.scale(find_lone_pods(api), 2)


USES = {
    "leeward-read": (plan, find_volumes, report),
    "leeward-taint": (plan, taint),
    "leeward-act": (drain,),
    "leeward-surge": (surge,),
    "leeward-surge-read": (find_lone_pods,),
}


@pytest.mark.parametrize("role", USES)
def test_what_is_done_with_a_role_needs_exactly_its_rules(role):
    recorder = Recorder()
    for use in USES[role]:
        use(ClusterApi(recorder))
    assert recorder.used == RULES[role]


def test_every_role_is_used():
    assert set(USES) == set(RULES)


def test_only_the_draining_role_removes_pods_and_nodes_and_only_where_asked_for_it_scales():
    dangerous = {
        role: {(resource, verb) for _, resource, verb in rules if verb == "delete" or "/" in resource}
        for role, rules in RULES.items()
    }
    assert {role: found for role, found in dangerous.items() if found} == {
        "leeward-act": {
            ("nodes", "delete"),
            ("pods", "delete"),
            ("pods/eviction", "create"),
            ("pods/status", "patch"),
        },
        "leeward-surge": {("deployments/scale", "patch")},
    }


def test_no_rule_has_a_wildcard():
    assert not [rule for rules in RULES.values() for rule in rules if "*" in "".join(rule)]
