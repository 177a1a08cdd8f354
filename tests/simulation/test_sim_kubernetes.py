"""What `SimKubernetes` adds to the contract that all clients hold: faults, stale reads, a record of what it did."""

from dataclasses import replace
from datetime import timedelta

import pytest

from leeward.errors import ClusterUnreachableError, ObjectGoneError, ThrottledError
from leeward.model.node import Taint
from leeward.ports.kubernetes import EvictionRefusedError
from local.cluster.model import Cluster
from local.cluster.nodes import NodeSpec
from local.cluster.settings import ClusterSettings
from simulation.kubernetes import SimKubernetes
from tests.fakes.clock import FakeClock

TAINT = Taint(key="leeward.dev/disrupted", effect="NoSchedule", value="manual")


class Disturbances:
    """Notes each request; raises what was put into `fail` under its name, or calls it."""

    def __init__(self):
        self.requests = []
        self.fail = {}

    def __call__(self, verb):
        self.requests.append(verb)
        found = self.fail.get(verb)
        if isinstance(found, Exception):
            raise found
        if found is not None:
            found()


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def model(clock):
    model = Cluster(clock=lambda: clock.now().timestamp(), settings=ClusterSettings(pod_start=0.0))
    for name in ("node-a", "node-b"):
        model.add_node(NodeSpec(name=name, instance_id=f"i-{name[-1]}"))
    for name in ("web-1", "web-2"):
        spec = {"nodeName": "node-a", "containers": [{"name": "main", "image": "i"}]}
        model.create("pods", {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec})
    model.step(model.now())
    return model


@pytest.fixture
def disturb():
    return Disturbances()


@pytest.fixture
def api(model, clock, disturb):
    return SimKubernetes(model, clock, disturb)


def budget(model, name, **limit):
    spec = {"selector": {"matchLabels": {"app": "web"}}, **limit}
    model.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec})


def test_every_request_can_be_disturbed_before_it_does_anything(api, model, disturb):
    node, pod = api.node("node-a"), api.pods_on("node-a")[0]
    calls = {
        "list nodes": api.nodes,
        "get nodes": lambda: api.node("node-a"),
        "list pods": lambda: api.pods_on("node-a"),
        "list poddisruptionbudgets": api.budgets,
        "list daemonsets": api.daemon_sets,
        "patch nodes": lambda: api.taint(node, TAINT),
        "create pods/eviction": lambda: api.evict(pod),
        "delete pods": lambda: api.delete_pod(pod),
        "delete nodes": lambda: api.delete_node(node),
    }
    version = model.store.version
    for verb, call in calls.items():
        disturb.fail[verb] = ClusterUnreachableError("gone for a while")
        with pytest.raises(ClusterUnreachableError):
            call()
    assert model.store.version == version
    assert (api.deletions, api.removals) == ([], [])


def test_an_answer_can_be_lost_after_the_request_had_its_effect(model, clock):
    lost = Disturbances()
    api = SimKubernetes(model, clock, lose=lost)
    node, pod = api.node("node-a"), api.pods_on("node-a")[0]
    for verb, call in {
        "patch nodes": lambda: api.taint(node, TAINT),
        "delete pods": lambda: api.delete_pod(pod),
        "create pods/eviction": lambda: api.evict(pod),
    }.items():
        lost.fail[verb] = ClusterUnreachableError("connection reset")
        with pytest.raises(ClusterUnreachableError):
            call()
    assert api.node("node-a").tainted
    assert [deletion.pod for deletion in api.deletions] == [pod.key]
    assert lost.requests == ["patch nodes", "delete pods", "create pods/eviction"]


def test_every_list_is_consistent_and_a_removed_node_is_forgotten(api):
    assert [node.name for node in api.nodes()] == ["node-a", "node-b"]
    api.delete_node(api.node("node-b"))
    assert [node.name for node in api.nodes()] == ["node-a"]


def test_a_node_that_changes_at_every_try_is_given_up_as_throttled(api, model, disturb):
    node = api.node("node-a")

    def touch():
        model.patch("nodes", "node-a", {"metadata": {"annotations": {"touched": str(model.store.version)}}})

    disturb.fail["patch nodes"] = touch
    with pytest.raises(ThrottledError, match="5 conflicts in a row"):
        api.taint(node, TAINT)
    assert not api.node("node-a").tainted


def test_a_node_that_is_replaced_between_the_read_and_the_patch_is_not_tainted(api, model, disturb):
    node = api.node("node-b")

    def succeed():
        model.delete("nodes", "node-b")
        model.add_node(NodeSpec(name="node-b", instance_id="i-c"))

    disturb.fail["patch nodes"] = succeed
    with pytest.raises(ObjectGoneError, match="not there any more"):
        api.taint(node, TAINT)
    assert not model.get("nodes", "node-b")["spec"].get("taints")


def test_a_deletion_names_the_instance_of_a_node_that_was_deleted_meanwhile(api, model):
    """The function has read its pods before; the Node's own pods are still ending."""
    pod, node = api.pods_on("node-a")[0], api.node("node-a")
    model.delete("nodes", "node-a")
    api.delete_pod(pod, grace_seconds=30)
    assert [(one.pod, one.instance) for one in api.deletions] == [(pod.key, node.instance_id)]


def test_a_budget_is_named_as_the_real_client_names_it(api, model):
    budget(model, "web", maxUnavailable=0)
    with pytest.raises(EvictionRefusedError) as raised:
        api.evict(api.pods_on("node-a")[0])
    assert (raised.value.budgets, raised.value.permanent) == (("default/web",), False)
    budget(model, "twice", maxUnavailable=1)
    with pytest.raises(EvictionRefusedError) as raised:
        api.evict(api.pods_on("node-a")[0])
    assert raised.value.permanent
    assert model.history.violations() == []


def test_only_what_was_really_deleted_is_noted(api, clock):
    first, second = api.pods_on("node-a")
    api.evict(first)
    api.delete_pod(replace(second, uid="of-its-predecessor"))
    api.delete_pod(second, 1)
    assert [(noted.pod, noted.instance) for noted in api.deletions] == [("default/web-2", "i-a")]
    node = api.node("node-b")
    clock.sleep(3)
    for _ in range(2):
        api.delete_node(node)
    assert [(noted.node, noted.instance, noted.at) for noted in api.removals] == [("node-b", "i-b", clock.now())]


def test_an_evicted_pod_leaves_when_its_grace_has_passed(api, model, clock):
    api.evict(api.pods_on("node-a")[0])
    assert [pod.deletion is not None for pod in api.pods_on("node-a")] == [True, False]
    clock.sleep(31)
    model.step(model.now())
    assert [pod.name for pod in api.pods_on("node-a")] == ["web-2"]


def test_the_events_of_a_pod_in_a_vanished_namespace_are_not_missed(api):
    pod = replace(api.pods_on("node-a")[0], namespace="gone")
    api.event(pod, reason="R", message="m", warning=False, now=api.node("node-a").created + timedelta(seconds=1))
