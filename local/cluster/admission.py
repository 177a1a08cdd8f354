"""Defaults that the API server writes into objects, as far as clients that manage nodes read them.

Rules: `pkg/apis/*/v1/defaults.go` and the admission plugins Priority and DefaultTolerationSeconds of Kubernetes."""

from __future__ import annotations

from .objects import Obj
from .quantities import resource_list
from .resources import Resource

_SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_FIRST_PHASES = {"Namespace": "Active", "PersistentVolumeClaim": "Pending", "PersistentVolume": "Available"}
_GENERATION_KINDS = frozenset({"Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "PodDisruptionBudget", "Job"})


def counts_generations(resource: Resource) -> bool:
    """Return whether each change of the spec raises metadata.generation."""
    return resource.kind in _GENERATION_KINDS


def defaulted(resource: Resource, obj: Obj, priority_classes: dict[str, int]) -> Obj:
    """Fill in the defaults of an object that is about to be stored, in place, and return it. `priority_classes`: value
    by name.
    """
    if resource.kind == "Pod":
        _pod(obj, priority_classes)
    elif resource.kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
        _workload(resource.kind, obj)
    elif resource.kind == "Job":
        _job(obj)
    elif resource.kind == "PersistentVolumeClaim":
        obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    elif resource.kind == "Namespace":
        obj.setdefault("spec", {"finalizers": ["kubernetes"]})
        obj.setdefault("metadata", {}).setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    elif resource.kind == "ValidatingWebhookConfiguration":
        for webhook in obj.get("webhooks") or []:
            _webhook(webhook)
    elif resource.kind == "ValidatingAdmissionPolicy":
        obj.setdefault("spec", {}).setdefault("failurePolicy", "Fail")
    elif resource.kind == "Node":
        obj.setdefault("spec", {})
        obj.setdefault("status", {})
    return obj


def fresh_status(resource: Resource, obj: Obj) -> None:
    """Set the status of a new object as the resource's create strategy does: pods are Pending, nodes keep the status
    with which the kubelet registers them.
    """
    if resource.kind == "Pod":
        obj["status"] = {"phase": "Pending", "qosClass": _qos(obj)}
    elif resource.kind in _FIRST_PHASES:
        obj["status"] = {"phase": _FIRST_PHASES[resource.kind]}
    elif resource.has_status and resource.kind != "Node":
        obj["status"] = {}


def _webhook(webhook: Obj) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    webhook.setdefault("matchPolicy", "Equivalent")
    webhook.setdefault("namespaceSelector", {})
    webhook.setdefault("objectSelector", {})
    webhook.setdefault("timeoutSeconds", 10)
    for rule in webhook.get("rules") or []:
        rule.setdefault("scope", "*")
    service = (webhook.get("clientConfig") or {}).get("service")
    if service:
        service.setdefault("port", 443)


def _pod(pod: Obj, priority_classes: dict[str, int]) -> None:
    spec = pod.setdefault("spec", {})
    pod_spec_defaults(spec)
    name = spec.get("priorityClassName")
    priority = _SYSTEM_PRIORITIES.get(name or "", priority_classes.get(name or "", 0))
    spec.setdefault("priority", priority)
    spec.setdefault("serviceAccountName", "default")
    tolerations = spec.setdefault("tolerations", [])
    for key in _TOLERATED_TAINTS:
        if not any(_covers(toleration, key) for toleration in tolerations):
            entry = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            tolerations.append(entry)


def _covers(toleration: Obj, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def pod_spec_defaults(spec: Obj) -> None:
    """Fill in the defaults that a pod and a pod template share."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("securityContext", {})
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        resources = container.setdefault("resources", {})
        limits = resources.get("limits")
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _qos(pod: Obj) -> str:
    """Return the QoS class, which follows from cpu and memory of all containers, init containers included.

    Rule: `pkg/apis/core/v1/helper/qos` of Kubernetes.
    """
    spec = pod["spec"]
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    resources = [container.get("resources") or {} for container in containers]
    amounts = [(_cpu_and_memory(entry.get("requests")), _cpu_and_memory(entry.get("limits"))) for entry in resources]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    guaranteed = all(len(limits) == 2 and requests == limits for requests, limits in amounts)
    return "Guaranteed" if guaranteed else "Burstable"


def _cpu_and_memory(values: Obj | None) -> dict[str, int]:
    return {name: amount for name, amount in resource_list(values).items() if name in ("cpu", "memory") and amount}


def _workload(kind: str, obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    pod_spec_defaults(template.setdefault("spec", {}))
    if kind != "DaemonSet":
        spec.setdefault("replicas", 1)
    if kind != "ReplicaSet":
        spec.setdefault("revisionHistoryLimit", 10)
    if kind == "Deployment":
        _rolling_update(spec.setdefault("strategy", {}), {"maxUnavailable": "25%", "maxSurge": "25%"})
        spec.setdefault("progressDeadlineSeconds", 600)
    if kind == "DaemonSet":
        _rolling_update(spec.setdefault("updateStrategy", {}), {"maxUnavailable": 1, "maxSurge": 0})
    if kind == "StatefulSet":
        spec.setdefault("podManagementPolicy", "OrderedReady")
        _rolling_update(spec.setdefault("updateStrategy", {}), {"partition": 0})
        spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})


def _rolling_update(strategy: Obj, defaults: Obj) -> None:
    """Fill in the type of an update strategy and, for a rolling update, its parameters."""
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        parameters = strategy.setdefault("rollingUpdate", {})
        for name, value in defaults.items():
            parameters.setdefault(name, value)


def _job(job: Obj) -> None:
    """Fill in a Job's numbers (`pkg/apis/batch/v1/defaults.go`), and the selector and labels of its pods (the Job's
    create strategy).
    """
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    # with a pod failure policy, a pod is replaced only after it has ended, not while it is being deleted
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    template = spec.setdefault("template", {})
    pod_spec_defaults(template.setdefault("spec", {}))
    if spec.get("manualSelector") or spec.get("selector"):
        return
    identity = {"controller-uid": job["metadata"]["uid"], "job-name": job["metadata"]["name"]}
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels.update({f"batch.kubernetes.io/{key}": value for key, value in identity.items()}, **identity)
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": identity["controller-uid"]}}
