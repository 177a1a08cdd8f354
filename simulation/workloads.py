"""What runs in a generated cluster: Deployments with and without budgets, DaemonSets, bare pods, critical pods.

Sized so that the pods fit with room to spare: about six a node at a tenth of a vCPU, on nodes of two at least."""

from random import Random
from typing import Any

from local.cluster.objects import Obj
from local.cluster.settings import IGNORE_SIGTERM, NEVER_READY, START_DELAY

PODS_PER_NODE = 6
MOST_REPLICAS = 10
IMPOSSIBLE = ("none may be missing", "all must be there", "two budgets")
USUAL = ("", "", "", "one at a time", "one at a time", "half", "all but one", "unhealthy may go")
RARELY = 0.04  # of the Deployments have an impossible one: six pods a node, so that most nodes can be drained
GRACES = (1, 5, 30, 30, 30, 60, 120)  # seconds
ZONE = "topology.kubernetes.io/zone"


def workloads(random: Random, nodes: int) -> tuple[Obj, ...]:
    """For so many nodes. The first two Deployments have a budget that drains can live with and one that they cannot."""
    found = [*_system(random), *_deployment(random, "web-0", 3, "one at a time")]
    found += _deployment(random, "web-1", 2, random.choice(IMPOSSIBLE))
    left = nodes * PODS_PER_NODE - 7
    number = 2
    while left > 0:
        replicas = min(random.randint(1, MOST_REPLICAS), left)
        budget = random.choice(IMPOSSIBLE if random.random() < RARELY else USUAL)
        found += _deployment(random, f"web-{number}", replicas, budget)
        left -= replicas
        number += 1
    found += [_bare_pod(random, f"bare-{number}") for number in range(random.randint(1, 1 + nodes // 10))]
    return tuple(found)


def _system(random: Random) -> list[Obj]:
    """As on any EKS cluster: an agent that tolerates everything, one that does not, a critical Deployment."""
    proxy = _template("kube-proxy", random, grace=30, priorityClassName="system-node-critical")
    proxy["spec"]["tolerations"] = [{"operator": "Exists"}]
    agents = [_daemon_set("kube-proxy", proxy), _daemon_set("log-agent", _template("log-agent", random))]
    dns = _template("coredns", random, grace=30, priorityClassName="system-cluster-critical")
    return [
        *agents,
        _workload("Deployment", "coredns", dns, namespace="kube-system", replicas=2),
        _budget("coredns", "coredns", namespace="kube-system", maxUnavailable=1),
    ]


def _deployment(random: Random, name: str, replicas: int, budget: str) -> list[Obj]:
    annotations = {}
    if random.random() < 0.15:
        annotations[START_DELAY] = str(random.choice((20, 60, 150)))
    if random.random() < 0.1:
        annotations[IGNORE_SIGTERM] = "true"
    if random.random() < 0.04:
        annotations[NEVER_READY] = "true"
    template = _template(name, random, annotations=annotations)
    if random.random() < 0.15:
        template["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    if random.random() < 0.3:
        template["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": name}},
            }
        ]
    return [_workload("Deployment", name, template, replicas=replicas), *_budgets(name, replicas, budget)]


def _budgets(name: str, replicas: int, kind: str) -> list[Obj]:
    limits: dict[str, list[dict[str, Any]]] = {
        "one at a time": [{"maxUnavailable": 1}],
        "half": [{"minAvailable": "50%"}],
        "all but one": [{"minAvailable": replicas - 1}],
        "unhealthy may go": [{"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}],
        "none may be missing": [{"maxUnavailable": 0}],
        "all must be there": [{"minAvailable": replicas}],
        "two budgets": [{"maxUnavailable": 1}, {"maxUnavailable": "50%"}],
    }
    return [
        _budget(f"{name}-{number}" if number else name, name, **limit)
        for number, limit in enumerate(limits.get(kind, []))
    ]


def _template(name: str, random: Random, *, grace: int | None = None, **spec: Any) -> Obj:
    annotations = spec.pop("annotations", {})
    container = {"name": "main", "image": name, "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    return {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {
            "terminationGracePeriodSeconds": random.choice(GRACES) if grace is None else grace,
            "containers": [container],
            **spec,
        },
    }


def _workload(kind: str, name: str, template: Obj, *, namespace: str = "default", **spec: Any) -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def _daemon_set(name: str, template: Obj) -> Obj:
    return _workload("DaemonSet", name, template, namespace="kube-system")


def _bare_pod(random: Random, name: str) -> Obj:
    """Nothing starts it again once it is gone."""
    template = _template(name, random)
    metadata = {"name": name, "namespace": "default", **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _budget(name: str, app: str, *, namespace: str = "default", **limit: Any) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": app}}, **limit},
    }
