"""What every `ports.kubernetes.Workloads` does about Deployments, in the three worlds of `test_kubernetes`."""

from dataclasses import replace

import pytest

from leeward.errors import AccessDeniedError
from leeward.model.pod import Owner
from tests.contract.test_kubernetes import Faked, Simulated, aws, emulated, wait_until

__all__ = ["aws", "emulated"]  # fixtures

LABELS = {"app": "solo"}
SOLO = {
    "metadata": {"name": "solo"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "i"}]}},
    },
}
AUTOSCALED = {
    "metadata": {"name": "any"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "busy"}},
}
OF_A_SET = {
    "metadata": {"name": "other"},
    "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}},
}


def fill(model):
    model.create("deployments", SOLO, "shop")
    for autoscaler in (AUTOSCALED, OF_A_SET):
        model.create("horizontalpodautoscalers", autoscaler, "shop")


def runs(api):
    found = api.deployment("shop", "solo")
    return found is not None and found.available == 1


@pytest.fixture(params=["the client", "the fake", "the simulation"])
def cluster(request):
    if request.param == "the simulation":
        simulated = Simulated()
        fill(simulated.model)
        simulated.model.step(simulated.model.now())
        return simulated
    world = request.getfixturevalue("emulated")
    with world.server.lock:
        fill(world.server.model)
    wait_until(lambda: runs(world.api))
    if request.param == "the client":
        return world
    faked = Faked(world.api)
    faked.api.put_deployment(world.api.deployment("shop", "solo"))
    faked.api.autoscaled_keys = {"shop/busy"}
    return faked


def solo_pod(cluster):
    (pod,) = [pod for pod in cluster.api.pods() if pod.labels == LABELS or pod.name.startswith("solo")]
    return pod


def test_a_pod_leads_to_its_deployment_by_way_of_its_replica_set(cluster):
    found = cluster.api.deployment_of(solo_pod(cluster))
    assert (found.key, found.replicas, found.available) == ("shop/solo", 1, 1)
    assert (found.settled, found.recreate) == (True, False)


def test_a_pod_without_a_replica_set_has_no_deployment(cluster):
    (free,) = [pod for pod in cluster.api.pods() if pod.name == "free"]
    assert cluster.api.deployment_of(free) is None


def test_a_replica_set_that_is_gone_leads_nowhere(cluster):
    orphan = replace(solo_pod(cluster), owner=Owner(api_version="apps/v1", kind="ReplicaSet", name="gone-1"))
    assert cluster.api.deployment_of(orphan) is None
    assert cluster.api.deployment("shop", "gone") is None


def test_replicas_are_written_at_the_version_that_was_read_and_at_no_other(cluster):
    before = cluster.api.deployment("shop", "solo")
    assert cluster.api.scale(before, 2)
    assert cluster.api.deployment("shop", "solo").replicas == 2
    assert not cluster.api.scale(before, 5)
    assert cluster.api.deployment("shop", "solo").replicas == 2


def test_those_that_an_autoscaler_decides_are_named_and_no_stateful_sets(cluster):
    assert cluster.api.autoscaled("shop") == {"busy"}
    assert cluster.api.autoscaled("default") == frozenset()


def test_the_read_role_scales_nothing(emulated):
    with emulated.server.lock:
        fill(emulated.server.model)
    wait_until(lambda: runs(emulated.api))
    with pytest.raises(AccessDeniedError, match="not allowed to"):
        emulated.connect("AKIDREAD").scale(emulated.api.deployment("shop", "solo"), 2)
