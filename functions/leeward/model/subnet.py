"""Subnets: where a node may be placed, and how many IPv4 addresses are free there.

Concurrent launches share reservations: the addresses reserved for each, so that replacements placed at the same moment
see each other, and the spot capacity that runs short."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

LASTS = timedelta(minutes=2)  # by then the group lists the launched instance, and EC2 counts it
SHORT_FOR = timedelta(minutes=10)  # after the last warning; Karpenter takes 3, when it requests the next type instead


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Spot capacity: an instance type in a zone."""

    instance_type: str
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IpReservation:
    """Reservation for one replacement: an instance that leaves `left` with `millicores` is replaced by one launched in
    `subnet` that takes `ips`.

    `taken`: thousandths of a core that the new one brings. `launched` empty: not yet, or not recorded.
    """

    at: datetime
    left: str
    millicores: int
    zone: str
    subnet: str
    ips: int
    taken: int
    launched: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservations:
    """Reservations of one cluster, by the instance that leaves. `version` grows with every change of a reservation.
    `short`: spot capacity that EC2 has been taking back -> until when no launch should request it there.
    """

    version: int = 0
    by_instance: Mapping[str, IpReservation] = field(default_factory=dict)
    short: Mapping[Pool, datetime] = field(default_factory=dict)

    def short_at(self, now: datetime) -> frozenset[Pool]:
        """Return the spot capacity that is short at this moment."""
        return frozenset(pool for pool, until in self.short.items() if until > now)

    def others(self, instance: str, now: datetime) -> tuple[IpReservation, ...]:
        """Return the reservations of other instances that still count."""
        found = self.by_instance.items()
        return tuple(one for name, one in sorted(found) if name != instance and now - one.at < LASTS)

    def with_one(self, instance: str, promise: IpReservation) -> dict[str, IpReservation]:
        """Return the reservations with this one too; expired ones are dropped."""
        kept = {name: one for name, one in self.by_instance.items() if promise.at - one.at < LASTS}
        return {**kept, instance: promise}
