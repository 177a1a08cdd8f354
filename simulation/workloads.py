"""Workloads of a generated cluster: Deployments with and without budgets, StatefulSets with volumes, Jobs, DaemonSets,
bare pods, critical pods.

Sized so that the pods fit with capacity to spare: about six a node at a tenth of a vCPU, on nodes of two at least."""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from local.cluster.model import Cluster
from local.cluster.objects import Obj, path_name
from local.cluster.resources import BY_KIND
from local.cluster.settings import IGNORE_SIGTERM, NEVER_READY, RUN_SECONDS, START_DELAY
from simulation.placement_preferences import HOST, even, in_zones, preference

PODS_PER_NODE = 6
MOST_REPLICAS = 10
IMPOSSIBLE = ("none may be missing", "all must be there", "two budgets")
USUAL = ("", "", "", "one at a time", "one at a time", "half", "all but one", "unhealthy may go")
RARELY = 0.04  # of the Deployments have an impossible one: six pods a node, so that most nodes can be drained
GRACES = (1, 5, 30, 30, 30, 60, 120)  # seconds
NODES_PER_STATEFUL_SET, NODES_PER_JOB = 12, 20


def workloads(random: Random, nodes: int, zones: Sequence[str]) -> tuple[Obj, ...]:
    """Generate workloads for so many nodes. The first two Deployments have a budget that drains can live with and one
    that they cannot.

    `zones`: those with two nodes at least. A volume ties its pod to a zone, which must not lose its last node.
    """
    found = [*_system(random), *_deployment(random, "web-0", 3, "one at a time")]
    found += _deployment(random, "web-1", 2, random.choice(IMPOSSIBLE))
    left = nodes * PODS_PER_NODE - 7
    for number in range(1 + nodes // NODES_PER_STATEFUL_SET if zones else 0):
        replicas = random.randint(1, min(3, 1 + nodes // 5))
        found += _stateful_set(random, f"db-{number}", replicas, zones)
        left -= replicas
    for number in range(1 + nodes // NODES_PER_JOB):
        parallelism = random.randint(1, 3)
        found.append(_job(random, f"sums-{number}", parallelism))
        left -= parallelism
    number = 2
    while left > 0:
        replicas = min(random.randint(1, MOST_REPLICAS), left)
        budget = random.choice(IMPOSSIBLE if random.random() < RARELY else USUAL)
        name = f"web-{number}"
        found += _deployment(random, name, replicas, budget, **preference(random, name, replicas, nodes, zones))
        left -= replicas
        number += 1
    found += [_bare_pod(random, f"bare-{number}") for number in range(random.randint(1, 1 + nodes // 10))]
    return tuple(found)


def _system(random: Random) -> list[Obj]:
    """Generate the system pods of any EKS cluster: an agent that tolerates everything, one that does not, a critical
    Deployment.
    """
    proxy = _template("aws-node", random, grace=30, priorityClassName="system-node-critical")
    proxy["spec"]["tolerations"] = [{"operator": "Exists"}]
    agents = [_daemon_set("aws-node", proxy), _daemon_set("log-agent", _template("log-agent", random))]
    dns = _template("coredns", random, grace=30, priorityClassName="system-cluster-critical")
    return [
        *agents,
        _workload("Deployment", "coredns", dns, namespace="kube-system", replicas=2),
        _budget("coredns", "coredns", namespace="kube-system", maxUnavailable=1),
    ]


def _deployment(random: Random, name: str, replicas: int, budget: str, **spec: Any) -> list[Obj]:
    template = _template(name, random, annotations=_habits(random, slow=(20, 60, 150), never_ready=0.04), **spec)
    if random.random() < 0.15:
        template["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return [_workload("Deployment", name, template, replicas=replicas), *_budgets(name, replicas, budget)]


def _habits(random: Random, *, slow: Sequence[int], never_ready: float = 0) -> Obj:
    """Return annotations of pods that start slowly, do not listen to SIGTERM, or never become ready."""
    annotations = {}
    if random.random() < 0.15:
        annotations[START_DELAY] = str(random.choice(slow))
    if random.random() < 0.1:
        annotations[IGNORE_SIGTERM] = "true"
    if random.random() < never_ready:
        annotations[NEVER_READY] = "true"
    return annotations


def _stateful_set(random: Random, name: str, replicas: int, zones: Sequence[str]) -> list[Obj]:
    """Generate a StatefulSet whose pods are never permanently stuck: each can start again in the zone of its volume."""
    tied: Obj = {"affinity": in_zones(zones), **even(name, HOST, "ScheduleAnyway")}
    template = _template(name, random, annotations=_habits(random, slow=(10, 20)), **tied)
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
    }
    policy = random.choice(("OrderedReady", "OrderedReady", "Parallel"))
    spec: Obj = {"serviceName": name, "podManagementPolicy": policy, "volumeClaimTemplates": [claim]}
    made = _workload("StatefulSet", name, template, replicas=replicas, **spec)
    return [made, *_budgets(name, replicas, random.choice(("", "one at a time", "unhealthy may go")))]


def _job(random: Random, name: str, parallelism: int) -> Obj:
    """Generate a Job that runs for hours; an evicted pod counts as failed, in half of the Jobs, and is
    started again.
    """
    annotations = {RUN_SECONDS: str(random.choice((900, 1800, 3600)))}
    template = _template(name, random, annotations=annotations, restartPolicy="Never")
    spec: Obj = {"completions": 20 * parallelism, "parallelism": parallelism, "backoffLimit": 1000}
    if random.random() < 0.5:
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        spec["podFailurePolicy"] = {"rules": [rule]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template, **spec},
    }


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
    """Generate a pod that nothing starts again once it is gone."""
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


def wanted_replicas(workloads: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the replicas by Deployment, as its owner has written them."""
    found = [raw for raw in workloads if raw["kind"] == "Deployment"]
    return {path_name(dict(raw)): int(raw["spec"].get("replicas", 1)) for raw in found}


def create_workloads(cluster: Cluster, workloads: Iterable[Mapping[str, Any]]) -> None:
    """Create the objects, and the namespaces that they need."""
    known = {"default", "kube-system", "kube-public", "kube-node-lease"}
    for raw in workloads:
        space = raw["metadata"].get("namespace", "default")
        if space not in known:
            cluster.create("namespaces", {"metadata": {"name": space}})
            known.add(space)
        cluster.create(BY_KIND[raw["kind"]].plural, dict(raw), space)
