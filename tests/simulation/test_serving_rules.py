"""The rule about pods that wait beside their replacement, where not all of its pods can be served."""

from types import SimpleNamespace

import pytest

from local.cluster.deletion import DeleteOptions
from local.cluster.model import Cluster, ClusterSettings
from local.cluster.nodes import NodeSpec
from simulation.placement_preferences import ZONE
from simulation.serving_rules import SERVES, Serving
from tests.fakes.clock import START

OLD, NEW, APART = "i-00000000000000001", "i-00000000000000002", {"app": "apart"}
HERE, THERE = "us-east-1a", "us-east-1b"


@pytest.mark.parametrize(("served", "found"), [({}, 1), ({"nodeSelector": {ZONE: HERE}}, 0)])
def test_a_pod_waits_for_a_zone_that_a_pod_of_the_same_launch_could_not_take(served, found):
    """One pod of the old node runs on the new one. The other waits: it keeps its distance to a pod in that zone."""
    cluster = Cluster(clock=START.timestamp, settings=ClusterSettings(pod_start=0.0))
    for name, instance in (("old", OLD), ("new", NEW), ("beside", "i-beside")):
        cluster.add_node(NodeSpec(name=name, instance_id=instance, zone=HERE))
    cluster.create("pods", a_pod("beside", "beside", labels=APART), "default")
    pods = [
        cluster.create("pods", a_pod(name, "old", **more), "default") for name, more in (("one", served), ("two", {}))
    ]
    view = a_view(cluster)
    rule = Serving()
    assert [*rule.check(view)] == []
    for pod in pods:
        cluster.delete("pods", pod["metadata"]["name"], "default")
    cluster.create("pods", a_pod("one", "new", number=2, **served), "default")
    cluster.create("pods", a_pod("two", None, number=2), "default")
    view.now += SERVES + 1
    assert len([*rule.check(view)]) == found


@pytest.mark.parametrize(("moves", "broken"), [(True, 0), (False, 1)])
def test_a_launch_is_not_judged_by_pods_that_others_moved_after_its_plan(moves, broken):
    """A pod of the same controller is replaced on a third node while the launch comes: the zones count otherwise."""
    cluster = Cluster(clock=START.timestamp, settings=ClusterSettings(pod_start=0.0))
    for name, instance in (("old", OLD), ("new", NEW), ("beside", "i-beside"), ("third", "i-third")):
        cluster.add_node(NodeSpec(name=name, instance_id=instance, zone=HERE))
    cluster.create("pods", a_pod("beside", "beside", labels=APART), "default")
    cluster.create("pods", a_pod("two", "old"), "default")
    cluster.create("pods", a_pod("two", "third", number=3), "default")
    view = a_view(cluster)
    rule = Serving()
    assert [*rule.check(view)] == []
    for number in (1, 3) if moves else (1,):
        cluster.delete("pods", f"two-{number}", "default", options=DeleteOptions(grace=0))
    cluster.create("pods", a_pod("two", None, number=2), "default")
    view.now += SERVES + 1
    assert len([*rule.check(view)]) == broken


@pytest.mark.parametrize(("beside", "found"), [("old", 0), ("there", 1)])
def test_a_pod_that_follows_one_that_leaves_as_well_is_not_judged(beside, found):
    """The other one goes to a free place in another zone, which is not known at the launch."""
    cluster = Cluster(clock=START.timestamp, settings=ClusterSettings(pod_start=0.0))
    for name, instance, zone in (("old", OLD, HERE), ("new", NEW, HERE), ("there", "i-there", THERE)):
        cluster.add_node(NodeSpec(name=name, instance_id=instance, zone=zone))
    followed = {"app": "followed"}
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": followed}}
    follows = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    cluster.create("pods", a_pod("followed", beside, labels=followed), "default")
    cluster.create("pods", a_pod("follower", "old", **follows), "default")
    view = a_view(cluster)
    rule = Serving()
    assert [*rule.check(view)] == []
    for name in ("follower-1", "followed-1"):
        cluster.delete("pods", name, "default", options=DeleteOptions(grace=0))
    cluster.create("pods", a_pod("followed", "there", labels=followed, number=2), "default")
    cluster.create("pods", a_pod("follower", None, number=2, **follows), "default")
    view.now += SERVES + 1
    assert len([*rule.check(view)]) == found


def a_view(cluster):
    """A plan for the old instance that could take either zone, and its launch."""
    return SimpleNamespace(
        now=1000.0,
        cluster=cluster,
        plans=[(OLD, SimpleNamespace(options=[SimpleNamespace(zone=HERE), SimpleNamespace(zone=THERE)]))],
        launches=[(f"{OLD}/1", NEW)],
        troubled=lambda _: False,
        running=lambda _: True,
    )


def a_pod(name, node, labels=None, number=1, **spec):
    """A pod of its own controller with a rule about zones, which keeps the second from the zone of the pod beside."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": APART if name == "two" else {"app": "nowhere"}}}
    tied = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}", "controller": True}
    containers = [{"name": "main", "image": "image", "resources": {"requests": {"cpu": "10m"}}}]
    metadata = {"name": f"{name}-{number}", "labels": labels or {"app": name}, "ownerReferences": [owner]}
    placed = {"nodeName": node} if node else {}
    return {"metadata": metadata, "spec": {"containers": containers, "affinity": tied, **placed, **spec}}
