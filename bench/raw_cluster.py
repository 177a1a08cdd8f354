"""Nodes and pods as an API server writes them, as large as on a real cluster: managed fields, statuses, environment.

Pods of one Deployment differ in name, uid, node and address alone; every fifth Deployment spreads over the zones."""

from collections.abc import Iterator
from typing import Any

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
REPLICAS = 10
CPUS, MEMORIES = ("100m", "250m", "400m", "150m", "300m"), ("256Mi", "512Mi", "1Gi", "768Mi")
BORN = "2026-04-01T08:00:00Z"


def node_name(number: int) -> str:
    """Return a node name as EC2 forms it."""
    return f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.ec2.internal"


def instance_id(number: int) -> str:
    """Return the id of the node's instance."""
    return f"i-{number:017x}"


def nodes(count: int, *, cpu: str = "7910m", pods: int = 58, first: int = 0) -> Iterator[dict[str, Any]]:
    """Return ready nodes in three zones, from the `first` on."""
    for number in range(first, count):
        name, zone = node_name(number), ZONES[number % len(ZONES)]
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": "m5.2xlarge",
            "topology.kubernetes.io/region": "us-east-1",
            "topology.kubernetes.io/zone": zone,
            "leeward.dev/subnet-id": f"subnet-{zone}",
            "topology.cast.ai/subnet-id": f"subnet-{zone}",
        }
        allocatable = {"cpu": cpu, "memory": "31482304Ki", "pods": str(pods), "ephemeral-storage": "18242267924"}
        conditions = [
            {"type": kind, "status": "True" if kind == "Ready" else "False", "reason": f"Kubelet{kind}", **_beats()}
            for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        ]
        yield {
            "metadata": {
                "name": name,
                "uid": f"node-{number}",
                "resourceVersion": str(number),
                "creationTimestamp": BORN,
                "labels": labels,
                "annotations": {"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/attached": "true"},
                "managedFields": _managed(labels),
            },
            "spec": {"providerID": f"aws:///{zone}/{instance_id(number)}"},
            "status": {
                "allocatable": allocatable,
                "capacity": {**allocatable, "cpu": "8"},
                "conditions": conditions,
                "images": [{"names": [f"registry/app-{one}@sha256:{one:064x}"], "sizeBytes": one} for one in range(20)],
                "nodeInfo": {"kubeletVersion": "v1.31.4-eks-0a1b2c3"},
            },
        }


def pods(count: int, node_count: int, *, first: int = 0) -> Iterator[dict[str, Any]]:
    """Return running pods from the `first` on, assigned to the nodes in turn; the number decides the pod's workload."""
    for number in range(first, count):
        app = f"app-{number // REPLICAS}"
        labels = {
            "app": app,
            "pod-template-hash": f"{number // REPLICAS:010x}",
            "team": f"team-{number // REPLICAS % 7}",
        }
        yield {
            "metadata": {
                "name": f"{app}-{number}",
                "namespace": "shop",
                "uid": f"pod-{number}",
                "resourceVersion": str(number),
                "creationTimestamp": BORN,
                "labels": labels,
                "annotations": {"kubectl.kubernetes.io/restartedAt": BORN, "prometheus.io/scrape": "true"},
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
                ],
                "managedFields": _managed(labels),
            },
            "spec": _pod_spec(number, app, node_name(number % node_count)),
            "status": _pod_status(number),
        }


def _pod_spec(number: int, app: str, node: str) -> dict[str, Any]:
    workload = number // REPLICAS
    requests = {"cpu": CPUS[workload % len(CPUS)], "memory": MEMORIES[workload % len(MEMORIES)]}
    container = {
        "name": "main",
        "image": f"registry/{app}:v1.{workload}",
        "env": [{"name": f"SETTING_{one}", "value": f"value-{one}"} for one in range(12)],
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
    }
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {
        "nodeName": node,
        "containers": [container],
        "volumes": [
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607}}]}}
        ],
        "tolerations": tolerations,
        "serviceAccountName": app,
        "terminationGracePeriodSeconds": 30,
        **({"topologySpreadConstraints": [spread]} if workload % 5 == 0 else {}),
    }


def _pod_status(number: int) -> dict[str, Any]:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "startTime": BORN,
        "podIP": f"10.1.{number // 256 % 256}.{number % 256}",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": BORN} for kind in kinds],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "containerID": f"containerd://{number:064x}",
                "imageID": f"registry/app@sha256:{number:064x}",
                "state": {"running": {"startedAt": BORN}},
            }
        ],
    }


def _managed(labels: dict[str, str]) -> list[dict[str, Any]]:
    """Return the API server's record of the writer of each field."""
    fields: dict[str, Any] = {f"f:{key}": {} for key in labels}
    deep: dict[str, Any] = {
        "f:spec": {"f:containers": {'k:{"name":"main"}': {f"f:field{one}": {} for one in range(20)}}}
    }
    return [
        {"manager": manager, "operation": "Update", "time": BORN, "fieldsV1": {"f:metadata": fields, **deep}}
        for manager in ("kube-controller-manager", "kubelet")
    ]


def _beats() -> dict[str, str]:
    return {"lastHeartbeatTime": BORN, "lastTransitionTime": BORN}
