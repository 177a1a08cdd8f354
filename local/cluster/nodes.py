"""Node objects as a kubelet registers them: labels, addresses, capacity, all ten nodeInfo fields."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from .objects import Obj

_GIB = 1024**3
RESTARTS_ALL = "RestartAllContainersOnContainerExits"
_DECLARING = 36  # first minor version whose kubelets declare it


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceShape:
    """Shape of an instance type: vCPUs, memory in GiB, pods by the ENI formula, architecture."""

    cpu: int
    memory: float
    pods: int
    arch: str = "amd64"


_UNKNOWN = InstanceShape(cpu=2, memory=8, pods=29)
_SIZES = {"large": (2, 29), "xlarge": (4, 58), "2xlarge": (8, 58), "4xlarge": (16, 234), "8xlarge": (32, 234)}
_FAMILIES = {"c": 2, "m": 4, "r": 8}  # GiB per vCPU
_TYPES = {
    "t3.micro": InstanceShape(cpu=2, memory=1, pods=4),
    "t3.small": InstanceShape(cpu=2, memory=2, pods=11),
    "t3.medium": InstanceShape(cpu=2, memory=4, pods=17),
    "t3.large": InstanceShape(cpu=2, memory=8, pods=35),
    "t3.xlarge": InstanceShape(cpu=4, memory=16, pods=58),
    "t4g.medium": InstanceShape(cpu=2, memory=4, pods=17, arch="arm64"),
    "t4g.large": InstanceShape(cpu=2, memory=8, pods=35, arch="arm64"),
}


def instance_shape(instance_type: str) -> InstanceShape:
    """Return the shape of c, m and r families by their size; 2 vCPU and 8 GiB for unknown types."""
    if instance_type in _TYPES:
        return _TYPES[instance_type]
    family, _, size = instance_type.partition(".")
    if family[:1] not in _FAMILIES or size not in _SIZES:
        return _UNKNOWN
    cpu, pods = _SIZES[size]
    arch = "arm64" if "g" in family[2:] else "amd64"
    return InstanceShape(cpu=cpu, memory=cpu * _FAMILIES[family[0]], pods=pods, arch=arch)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """Values that differ between nodes. Empty strings and None mean the value of an ordinary instance of that type."""

    name: str
    zone: str = "us-east-1a"
    instance_id: str = ""
    instance_type: str = "m5.large"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] = ()
    cpu: str | None = None
    memory: str | None = None
    pods: int | None = None
    ready: bool = True
    version: str = "v1.36.2"


def node_object(spec: NodeSpec, *, now: str) -> Obj:
    """Return the Node; `now` (RFC 3339) dates its conditions. Ids derive from the name, so the same name gives the same
    node.
    """
    shape = instance_shape(spec.instance_type)
    instance_id = spec.instance_id or "i-" + _digest(spec.name)[:17]
    capacity = {
        "cpu": spec.cpu or str(shape.cpu),
        "memory": spec.memory or f"{int(shape.memory * _GIB) // 1024}Ki",
        "ephemeral-storage": "20959212Ki",
        "pods": str(spec.pods if spec.pods is not None else shape.pods),
    }
    body: Obj = {"providerID": f"aws:///{spec.zone}/{instance_id}"}
    if spec.taints:
        body["taints"] = [dict(taint) for taint in spec.taints]
    return {
        "metadata": {"name": spec.name, "labels": {**_labels(spec, shape), **spec.labels}},
        "spec": body,
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "addresses": _addresses(spec.name),
            "nodeInfo": _node_info(spec, shape),
            "conditions": _conditions(now, ready=spec.ready),
            **_declared(spec.version),
        },
    }


def _declared(version: str) -> Obj:
    """Return the features that a kubelet of this version declares and that scheduling asks for (KEP 5328)."""
    minor = int(version.removeprefix("v").split(".")[1])
    return {"declaredFeatures": [RESTARTS_ALL]} if minor >= _DECLARING else {}


def boot_after(node: Obj) -> str:
    """Return the boot id of the boot that follows the node's present one."""
    return str(uuid.UUID(_digest(f"{node['metadata']['name']}/{node['status']['nodeInfo']['bootID']}")[:32]))


def monitored_condition(*, kind: str, status: str, reason: str, now: str) -> Obj:
    """Return a condition as the EKS node monitoring agent writes it."""
    condition = {"type": kind, "status": status, "reason": reason, "message": reason}
    return {**condition, "lastHeartbeatTime": now, "lastTransitionTime": now}


def ready_condition(*, status: str, now: str) -> Obj:
    """Return the Ready condition with the matching reason: True and False come from a kubelet, Unknown from its
    silence.
    """
    reason, message = {
        "True": ("KubeletReady", "kubelet is posting ready status"),
        "False": ("KubeletNotReady", "container runtime network not ready: cni plugin not initialized"),
        "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    }[status]
    condition = {"type": "Ready", "status": status, "reason": reason, "message": message}
    return {**condition, "lastHeartbeatTime": now, "lastTransitionTime": now}


def _labels(spec: NodeSpec, shape: InstanceShape) -> dict[str, str]:
    region = spec.zone.rstrip("abcdefghij")
    return {
        "beta.kubernetes.io/arch": shape.arch,
        "beta.kubernetes.io/instance-type": spec.instance_type,
        "beta.kubernetes.io/os": "linux",
        "failure-domain.beta.kubernetes.io/region": region,
        "failure-domain.beta.kubernetes.io/zone": spec.zone,
        "kubernetes.io/arch": shape.arch,
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": spec.instance_type,
        "topology.kubernetes.io/region": region,
        "topology.kubernetes.io/zone": spec.zone,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _addresses(name: str) -> list[Obj]:
    if name.startswith("ip-"):
        address = name.split(".", 1)[0].removeprefix("ip-").replace("-", ".")
    else:
        number = int(_digest(name)[:6], 16)
        address = f"10.0.{number // 254 % 254}.{number % 254 + 1}"
    kinds = (("InternalIP", address), ("InternalDNS", name), ("Hostname", name))
    return [{"type": kind, "address": value} for kind, value in kinds]


def _node_info(spec: NodeSpec, shape: InstanceShape) -> Obj:
    system = uuid.UUID(_digest(spec.name)[:32])
    return {
        "architecture": shape.arch,
        "bootID": str(uuid.UUID(_digest(f"{spec.name}/boot")[:32])),
        "containerRuntimeVersion": "containerd://1.7.27",
        "kernelVersion": "6.1.134-150.224.amzn2023.x86_64",
        "kubeProxyVersion": spec.version,
        "kubeletVersion": spec.version,
        "machineID": system.hex,
        "operatingSystem": "linux",
        "osImage": "Amazon Linux 2023",
        "systemUUID": str(system),
    }


def _conditions(now: str, *, ready: bool) -> list[Obj]:
    quiet = [
        {
            "type": f"{kind}Pressure",
            "status": "False",
            "reason": f"KubeletHasSufficient{kind}" if kind != "Disk" else "KubeletHasNoDiskPressure",
            "message": f"kubelet has no {kind.lower()} pressure",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        for kind in ("Memory", "Disk", "PID")
    ]
    return [*quiet, ready_condition(status="True" if ready else "False", now=now)]
