"""Targets of load balancers cut down to what decisions need (Elastic Load Balancing v2, DescribeTargetHealth)."""

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address, ip_network

from leeward.model.instance import Instance


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
class Target:
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


def is_of(target: Target, instance: Instance) -> bool:
    """Return whether the target is at the instance: by its id, or by an address of one of its interfaces."""
    if target.kind is TargetKind.INSTANCE:
        return target.id == instance.id
    try:
        address = ip_address(target.id)
    except ValueError:
        return False
    return any(address in ip_network(network, strict=False) for network in instance.networks)
