"""Defaults and first status that the API server gives to new objects."""

import pytest

from tests.local.cluster.builders import a_daemonset, a_pod, a_workload

BOTH = {"cpu": "1", "memory": "1Gi"}


def a_container(**resources):
    return {"name": "main", "image": "app:1", "resources": resources}


@pytest.mark.parametrize(
    ("containers", "init_containers", "qos_class"),
    [
        ([a_container()], [], "BestEffort"),
        ([a_container(limits={"nvidia.com/gpu": "1"})], [], "BestEffort"),
        ([a_container(requests={"cpu": "0"})], [], "BestEffort"),
        ([a_container()], [a_container(requests={"cpu": "1"})], "Burstable"),
        ([a_container(limits=BOTH)], [a_container()], "Burstable"),
        ([a_container(limits={"cpu": "1"})], [], "Burstable"),
        ([a_container(limits=BOTH, requests={"cpu": "500m"})], [], "Burstable"),
        ([a_container(limits=BOTH)], [], "Guaranteed"),
        ([a_container(limits=BOTH, requests={"cpu": "1000m", "memory": "1024Mi"})], [], "Guaranteed"),
    ],
)
def test_the_qos_class_follows_from_cpu_and_memory_of_all_containers(lab, containers, init_containers, qos_class):
    pod = a_pod(containers=containers, initContainers=init_containers)
    assert lab.create("pods", pod)["status"] == {"phase": "Pending", "qosClass": qos_class}


@pytest.mark.parametrize(
    ("resource", "workload", "field", "given", "stored"),
    [
        (
            "deployments",
            a_workload(),
            "strategy",
            None,
            ("RollingUpdate", {"maxUnavailable": "25%", "maxSurge": "25%"}),
        ),
        (
            "deployments",
            a_workload(),
            "strategy",
            {"rollingUpdate": {"maxSurge": 0}},
            ("RollingUpdate", {"maxUnavailable": "25%", "maxSurge": 0}),
        ),
        ("deployments", a_workload(), "strategy", {"type": "Recreate"}, ("Recreate", None)),
        ("daemonsets", a_daemonset(), "updateStrategy", None, ("RollingUpdate", {"maxUnavailable": 1, "maxSurge": 0})),
        ("daemonsets", a_daemonset(), "updateStrategy", {"type": "OnDelete"}, ("OnDelete", None)),
        ("statefulsets", a_workload(), "updateStrategy", None, ("RollingUpdate", {"partition": 0})),
    ],
)
def test_an_update_strategy_has_its_defaults(lab, resource, workload, field, given, stored):
    spec = {**workload["spec"], **({field: given} if given else {})}
    strategy = lab.create(resource, {**workload, "spec": spec})["spec"][field]
    assert (strategy["type"], strategy.get("rollingUpdate")) == stored
