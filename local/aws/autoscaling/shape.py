"""Launch choices of a group: zones, subnets, types and market of its next instance, and missing capacity.

The first type of a mixed instances policy is taken while it is available (strategy "prioritized"); weights are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

REPLACING_STATES = (  # of an instance whose root volume an instance refresh replaces, in their order
    "ReplacingRootVolume",
    "ReplacingRootVolume:Wait",
    "ReplacingRootVolume:Proceed",
    "RootVolumeReplaced",
)
COUNTED_STATES = frozenset({"Pending", "Pending:Wait", "Pending:Proceed", "InService", *REPLACING_STATES})
NO_CAPACITY = "InsufficientInstanceCapacity"
NO_ADDRESSES = "InsufficientFreeAddressesInSubnet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """Zone, subnet, type and market from which to launch an instance."""

    instance_type: str
    market: str  # "on-demand" or "spot"
    zone: str
    subnet: Any | None  # moto's Subnet; None in a group that names only zones

    @property
    def subnet_id(self) -> str | None:
        """Id of the subnet, if there is one."""
        return None if self.subnet is None else self.subnet.id


class CapacityError(Exception):
    """Refusal of an offering by EC2; ``code`` is EC2's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(slots=True, kw_only=True)
class Shortage:
    """Missing capacity wherever all given fields match; ``times`` counts down, None lasts until removed."""

    zone: str | None = None
    subnet: str | None = None
    instance_type: str | None = None
    market: str | None = None
    code: str = NO_CAPACITY
    times: int | None = None

    def covers(self, offering: Offering) -> bool:
        """Return whether this shortage matches the offering."""
        pairs = (
            (self.zone, offering.zone),
            (self.subnet, offering.subnet_id),
            (self.instance_type, offering.instance_type),
            (self.market, offering.market),
        )
        return self.times != 0 and all(wanted is None or wanted == found for wanted, found in pairs)


class Shortages:
    """Injected shortages."""

    def __init__(self) -> None:
        self._all: list[Shortage] = []

    def add(self, shortage: Shortage) -> None:
        """Inject one shortage."""
        self._all.append(shortage)

    def clear(self) -> None:
        """Make capacity unlimited again."""
        self._all.clear()

    def require(self, offering: Offering) -> None:
        """Raise ``CapacityError`` when the offering is unavailable now."""
        if offering.subnet is not None and offering.subnet.available_ip_address_count <= 0:
            message = f"There are not enough free addresses in subnet '{offering.subnet_id}' to satisfy the request."
            raise CapacityError(NO_ADDRESSES, message)
        for shortage in self._all:
            if shortage.covers(offering):
                if shortage.times is not None:
                    shortage.times -= 1
                raise CapacityError(shortage.code, _refusal(offering))


def _refusal(offering: Offering) -> str:
    return (
        f"We currently do not have sufficient {offering.instance_type} capacity in the Availability Zone you "
        f"requested ({offering.zone}). Our system will be working on provisioning additional capacity."
    )


def serving(group: Any) -> list[Any]:
    """Return the instances that are in service or about to be."""
    return [state for state in group.instance_states if state.lifecycle_state in COUNTED_STATES]


def counted(group: Any) -> list[Any]:
    """Return the instances that count towards the desired capacity: not those whose replacement is launching."""
    return [state for state in serving(group) if getattr(state, "replacement", None) is None]


def subnets(group: Any) -> list[Any]:
    """Return the group's subnets, in the order given."""
    ids = [item.strip() for item in (group.vpc_zone_identifier or "").split(",") if item.strip()]
    return [group.ec2_backend.get_subnet(subnet_id) for subnet_id in ids]


def overrides(group: Any) -> list[dict[str, Any]]:
    """Return the launch template overrides of a mixed instances policy."""
    policy = group.mixed_instances_policy or {}
    return list(policy.get("LaunchTemplate", {}).get("Overrides", []))


def instance_types(group: Any) -> list[str]:
    """Return the types the group may launch, the preferred one first."""
    named = [str(item["InstanceType"]) for item in overrides(group) if item.get("InstanceType")]
    return named or [str(group.instance_type)]


def template_version(group: Any) -> Any | None:
    """Return the launch template version that the next instance gets."""
    if group.ec2_launch_template is None:
        return None
    return group.ec2_launch_template.get_version(group.launch_template_version)


def distribution(group: Any) -> tuple[int, int] | None:
    """Return the on-demand base and the percentage above it, of a mixed instances policy."""
    if not group.mixed_instances_policy:
        return None
    wanted = group.mixed_instances_policy.get("InstancesDistribution") or {}
    base = int(wanted.get("OnDemandBaseCapacity") or 0)
    percentage = wanted.get("OnDemandPercentageAboveBaseCapacity")
    return base, 100 if percentage is None else int(percentage)


def next_market(group: Any) -> str:
    """Return ``spot`` or ``on-demand`` for the next instance, from the policy or from the template's market options."""
    shares = distribution(group)
    if shares is None:
        version = template_version(group)
        options = (version.data.get("InstanceMarketOptions") or {}) if version is not None else {}
        return "spot" if options.get("MarketType") == "spot" else "on-demand"
    base, percentage = shares
    present = counted(group)
    on_demand = sum(1 for state in present if state.instance.lifecycle != "spot")
    above = max(0, len(present) + 1 - base)
    wanted = min(base, len(present) + 1) + math.ceil(above * percentage / 100)
    return "on-demand" if on_demand < wanted else "spot"


def offerings(group: Any, market: str) -> Iterator[Offering]:
    """Return every offering for the next instance, the emptiest zone first and there the preferred type first."""
    present = counted(group)
    for zone, subnet in _places(group, present):
        for instance_type in instance_types(group):
            yield Offering(instance_type=instance_type, market=market, zone=zone, subnet=subnet)


def _places(group: Any, present: Iterable[Any]) -> list[tuple[str, Any | None]]:
    in_zone: dict[str, int] = {}
    in_subnet: dict[str, int] = {}
    for state in present:
        in_zone[state.availability_zone] = in_zone.get(state.availability_zone, 0) + 1
        in_subnet[state.instance.subnet_id] = in_subnet.get(state.instance.subnet_id, 0) + 1
    found = subnets(group)
    if not found:
        return [(zone, None) for zone in sorted(group.availability_zones, key=lambda zone: in_zone.get(zone, 0))]
    ordered = sorted(found, key=lambda subnet: (in_zone.get(subnet.availability_zone, 0), in_subnet.get(subnet.id, 0)))
    return [(subnet.availability_zone, subnet) for subnet in ordered]
