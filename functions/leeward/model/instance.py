"""Instances of EC2, cut down to what decisions need, with the attributes that a launch template sets and a running
instance shows, so that the two can be compared."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from leeward.model import well_known
from leeward.model.times import as_instant

ENDED = frozenset({"shutting-down", "terminated"})
ALIVE = frozenset({"pending", "running"})  # it runs, or starts


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAttributes:
    """Attributes of a launch, each None if not reported. `security_groups` of the primary interface, by id, sorted;
    `profile`: the instance profile's name; `metadata`: MetadataOptions as EC2 spells them; `tags` of the instance;
    `monitoring`: detailed.
    """

    security_groups: tuple[str, ...] | None = None
    profile: str | None = None
    metadata: Mapping[str, str] | None = None
    tags: Mapping[str, str] | None = None
    monitoring: bool | None = None

    @classmethod
    def of_template(cls, raw: Mapping[str, Any]) -> Self:
        """Parse LaunchTemplateData or a launch configuration."""
        profile = raw.get("IamInstanceProfile")
        named = profile if isinstance(profile, str) else (profile or {}).get("Name") or (profile or {}).get("Arn")
        monitoring = raw.get("Monitoring") or raw.get("InstanceMonitoring") or {}
        specs = raw.get("TagSpecifications") or ()
        tags = {
            t["Key"]: t.get("Value", "")
            for one in specs
            if one.get("ResourceType") == "instance"
            for t in one.get("Tags") or ()
        }
        metadata = raw.get("MetadataOptions")
        return cls(
            security_groups=_groups_of_template(raw),
            profile=named.rsplit("/", 1)[-1] if named else None,
            metadata=None if metadata is None else {key: str(value) for key, value in metadata.items()},
            tags=tags if tags else None,
            monitoring=bool(monitoring["Enabled"]) if "Enabled" in monitoring else None,
        )

    @classmethod
    def of_instance(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-instances`."""
        groups, arn = raw.get("SecurityGroups"), (raw.get("IamInstanceProfile") or {}).get("Arn")
        metadata, state = raw.get("MetadataOptions"), (raw.get("Monitoring") or {}).get("State")
        return cls(
            security_groups=None if groups is None else tuple(sorted({one.get("GroupId", "") for one in groups})),
            profile=arn.rsplit("/", 1)[-1] if arn else None,
            metadata=None if metadata is None else {key: str(value) for key, value in metadata.items()},
            tags={tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", ())},
            monitoring=None if state is None else state in {"enabled", "pending"},
        )


def _groups_of_template(raw: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the security groups of the template, or of its primary interface, the only ones that DescribeInstances
    lists for the instance itself; None for names, which only a launch configuration may have: they contain no ids.
    """
    found = raw.get("SecurityGroupIds") or raw.get("SecurityGroups") or ()
    for interface in raw.get("NetworkInterfaces") or ():
        if not interface.get("DeviceIndex") and not interface.get("NetworkCardIndex"):
            found = interface.get("Groups") or found
    return tuple(sorted(set(found))) if found and all(name.startswith("sg-") for name in found) else None


class CapacityType(StrEnum):
    """Purchase options of an instance; Karpenter's terms."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Instance of EC2: `describe-instances` cut down to what decisions need. `ips`: private IPv4 addresses of all its
    interfaces, 0 if not reported; `networks`: these addresses, IPv6 ones and delegated prefixes (CIDR) too; `image`:
    the AMI's id; `look`: the attributes that its launch template can set; `reservation`: its capacity reservation, if
    any; `dns`: its private DNS name.
    """

    id: str
    state: str
    type: str
    zone: str
    subnet: str
    capacity_type: CapacityType
    tags: Mapping[str, str]
    launched: datetime
    ips: int = 0
    networks: tuple[str, ...] = ()
    image: str = ""
    look: LaunchAttributes = field(default_factory=LaunchAttributes)
    reservation: str = ""
    dns: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `Reservations[].Instances[]`, of boto3 or of the AWS command line."""
        return cls(
            id=raw["InstanceId"],
            state=str(raw.get("State", {}).get("Name", "running")).lower(),
            type=raw.get("InstanceType", ""),
            zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
            subnet=raw.get("SubnetId", ""),
            capacity_type=CapacityType.SPOT if raw.get("InstanceLifecycle") == "spot" else CapacityType.ON_DEMAND,
            tags={tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", ())},
            launched=as_instant(raw["LaunchTime"]) if raw.get("LaunchTime") else datetime.min.replace(tzinfo=UTC),
            ips=sum(len(one.get("PrivateIpAddresses", ())) for one in raw.get("NetworkInterfaces", ())),
            networks=tuple(_networks(raw.get("NetworkInterfaces", ()))),
            image=raw.get("ImageId") or "",
            look=LaunchAttributes.of_instance(raw),
            reservation=raw.get("CapacityReservationId") or "",
            dns=raw.get("PrivateDnsName") or "",
        )

    @property
    def group(self) -> str | None:
        """Auto Scaling group that launched it, None for a lone instance."""
        return self.tags.get(well_known.GROUP_TAG)

    @property
    def ended(self) -> bool:
        """True if EC2 has begun or finished ending it: nothing runs there any more."""
        return self.state in ENDED


def _networks(interfaces: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for one in interfaces:
        yield from (address["PrivateIpAddress"] for address in one.get("PrivateIpAddresses", ()))
        yield from (address["Ipv6Address"] for address in one.get("Ipv6Addresses", ()))
        yield from (prefix["Ipv4Prefix"] for prefix in one.get("Ipv4Prefixes", ()))
        yield from (prefix["Ipv6Prefix"] for prefix in one.get("Ipv6Prefixes", ()))


def instance_id_of(provider_id: str) -> str:
    """Return the instance id: `aws:///us-east-1a/i-0abc` -> `i-0abc`. Nodes and instances are joined by provider id,
    never by DNS name.
    """
    return provider_id.rsplit("/", 1)[-1]


def names_others(tags: Mapping[str, str], cluster: str) -> bool:
    """Return whether the tags name clusters, and this one is not among them."""
    named = any(key.startswith(well_known.CLUSTER_TAG_PREFIX) or key in well_known.EKS_CLUSTER_TAGS for key in tags)
    return named and cluster_of(tags, [cluster]) is None


def cluster_of(tags: Mapping[str, str], clusters: Iterable[str]) -> str | None:
    """Return which of our clusters these instance or group tags name, None if none of them."""
    named = {tags.get(key) for key in well_known.EKS_CLUSTER_TAGS}
    return next((name for name in clusters if well_known.CLUSTER_TAG_PREFIX + name in tags or name in named), None)
