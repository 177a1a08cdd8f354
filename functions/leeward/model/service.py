"""Services cut down to what drains and upgrades need: whether a load balancer sends their requests to nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

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
