"""Subnets: where a node may be placed, and how many IPv4 addresses are free there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """Subnet of a VPC. `zone_id`: the zone's id, such as use1-az1, the same in every account; `free_ips` as EC2 counts
    them (its five reserved addresses are not among them).
    """

    id: str
    zone: str
    cidr: str = ""
    free_ips: int = 0
    vpc: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    zone_id: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-subnets`."""
        return cls(
            id=raw["SubnetId"],
            zone=raw.get("AvailabilityZone", ""),
            cidr=raw.get("CidrBlock", ""),
            free_ips=int(raw.get("AvailableIpAddressCount", 0)),
            vpc=raw.get("VpcId", ""),
            tags={tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", ())},
            zone_id=raw.get("AvailabilityZoneId", ""),
        )
