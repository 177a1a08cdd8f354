"""Services and targets cut down to what drains and upgrades need: whether a load balancer sends requests to nodes, and
which of its targets is a node (Elastic Load Balancing v2, DescribeTargetHealth)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address, ip_network
from typing import Any, Self

from leeward.model.instance import Instance
from leeward.model.raw_fields import mapping, mappings, metadata_of, text, texts

LOAD_BALANCER = "LoadBalancer"
_TYPE = "service.beta.kubernetes.io/aws-load-balancer-type"
_TARGETS = "service.beta.kubernetes.io/aws-load-balancer-nlb-target-type"
_CONTROLLERS = frozenset({"service.k8s.aws/nlb", "eks.amazonaws.com/nlb"})  # classes that heed the annotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A Service. `key`: namespace/name; `balanced`: of type LoadBalancer; `on_nodes`: requests may be sent to a node's
    own address for it, by a load balancer with instance targets, a node port or an external address.
    """

    key: str
    balanced: bool
    on_nodes: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a Service of the API."""
        meta, spec = metadata_of(raw, "service"), mapping(raw.get("spec"))
        balanced = spec.get("type") == LOAD_BALANCER
        ported = any(port.get("nodePort") for port in mappings(spec.get("ports")))
        return cls(
            key=f"{text(meta.get('namespace'), 'default')}/{meta['name']}",
            balanced=balanced,
            on_nodes=bool(spec.get("externalIPs")) or (not _targets_pods(meta, spec) if balanced else ported),
        )


def _targets_pods(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> bool:
    """Return whether the AWS Load Balancer Controller, or EKS Auto Mode, registers the pods' addresses: the cloud
    provider ignores the annotation and registers instances. Node ports, which are allocated all the same, are unused.
    """
    annotations = texts(meta.get("annotations"))
    kind = annotations.get(_TYPE)
    controller = kind == "external" or spec.get("loadBalancerClass") in _CONTROLLERS
    return kind == "nlb-ip" or (controller and annotations.get(_TARGETS) == "ip")


class TargetKind(StrEnum):
    """Ways in which a target group names its targets; other kinds (`lambda`, `alb`) are never a node's."""

    INSTANCE = "instance"
    IP = "ip"


class Health(StrEnum):
    """States of AWS that a drain distinguishes: every other one (`initial`, `healthy`, `unhealthy`, `unavailable`) may
    still be sent new requests.
    """

    DRAINING = "draining"  # no new requests; those under way have the group's deregistration delay
    UNUSED = "unused"  # not registered, or of no load balancer


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerTarget:
    """Registered target. `group`: its target group's name; `id`: instance id or address; `state`: as AWS reports it."""

    group: str
    kind: TargetKind
    id: str
    port: int
    state: str

    @property
    def draining(self) -> bool:
        """True if it is being deregistered."""
        return self.state == Health.DRAINING

    @property
    def registered(self) -> bool:
        """True if requests may still be under way to it."""
        return self.state != Health.UNUSED

    @property
    def named(self) -> str:
        """Name for people: `target i-0abc:30080 of web (healthy)`."""
        return f"target {self.id}:{self.port} of {self.group} ({self.state})"


def is_of(target: LoadBalancerTarget, instance: Instance) -> bool:
    """Return whether the target is at the instance: by its id, or by an address of one of its interfaces."""
    if target.kind is TargetKind.INSTANCE:
        return target.id == instance.id
    try:
        address = ip_address(target.id)
    except ValueError:
        return False
    return any(address in ip_network(network, strict=False) for network in instance.networks)
