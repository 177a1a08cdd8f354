"""Attributes that a launch template sets and a running instance shows, so that the two can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


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
        tags = {t["Key"]: t.get("Value", "") for one in specs if _of_instances(one) for t in one.get("Tags") or ()}
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


def _of_instances(specification: Mapping[str, Any]) -> bool:
    return specification.get("ResourceType") == "instance"


def _groups_of_template(raw: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the security groups of the template, or of its primary interface, the only ones that DescribeInstances
    lists for the instance itself; None for names, which only a launch configuration may have: they contain no ids.
    """
    found = raw.get("SecurityGroupIds") or raw.get("SecurityGroups") or ()
    for interface in raw.get("NetworkInterfaces") or ():
        if not interface.get("DeviceIndex") and not interface.get("NetworkCardIndex"):
            found = interface.get("Groups") or found
    return tuple(sorted(set(found))) if found and all(name.startswith("sg-") for name in found) else None
