"""Launches of an Auto Scaling group: its launch template or configuration, its overrides, and their settings."""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from leeward.model.instance import LaunchAttributes

# User data of a snapshot that was taken without it, base64 as EC2's own: nothing is known of what nodes get from it.
USER_DATA_LEFT_OUT = b64encode(b"# left out: leeward snapshot --no-user-data\n").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplateRef:
    """Version of a launch template, by id or by name. `version`: a number, `$Latest` or `$Default`."""

    id: str = ""
    name: str = ""
    version: str = "$Default"

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse a LaunchTemplateSpecification."""
        return cls(
            id=raw.get("LaunchTemplateId") or "",
            name=raw.get("LaunchTemplateName") or "",
            version=str(raw.get("Version") or "$Default"),
        )

    @property
    def label(self) -> str:
        """Name for people: `lt-0abc version $Latest`."""
        return f"{self.id or self.name} version {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Override of a mixed instances policy: a type, or requirements that types have to meet (EC2's InstanceRequirements
    as they stand), perhaps with a launch template of its own, and with an `image` in place of the template's.
    """

    instance_type: str = ""
    requirements: Mapping[str, Any] | None = None
    template: LaunchTemplateRef | None = None
    image: str = ""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of MixedInstancesPolicy.LaunchTemplate.Overrides."""
        template = raw.get("LaunchTemplateSpecification")
        return cls(
            instance_type=raw.get("InstanceType") or "",
            requirements=raw.get("InstanceRequirements"),
            template=LaunchTemplateRef.from_json(template) if template else None,
            image=raw.get("ImageId") or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSource:
    """Source of a group's instances: a launch template or a launch configuration (by name)."""

    template: LaunchTemplateRef | None = None
    configuration: str | None = None
    overrides: tuple[Override, ...] = ()

    @classmethod
    def from_group(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-auto-scaling-groups`."""
        mixed = (raw.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
        template = mixed.get("LaunchTemplateSpecification") or raw.get("LaunchTemplate")
        return cls(
            template=LaunchTemplateRef.from_json(template) if template else None,
            configuration=raw.get("LaunchConfigurationName") or None,
            overrides=tuple(Override.from_json(one) for one in mixed.get("Overrides") or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """Settings of a launch template version or a launch configuration. `volumes`: GiB by device name, only if a size is
    given; `user_data` base64 as EC2 keeps it; `efas`: interfaces of the kinds efa and efa-only; `devices`: the block
    device mappings as canonical JSON, to compare two of them; `alias`: the image as the version names it, where that is
    an SSM parameter (`resolve:ssm:NAME`); `overridden`: an override of the group names the image, not the version;
    `vcpus`: of its CpuOptions, None where the type's own count.
    """

    template: str = ""
    version: int = 0
    default: bool = False
    image: str = ""
    instance_type: str = ""
    requirements: Mapping[str, Any] | None = None
    user_data: str = ""
    volumes: Mapping[str, int] = field(default_factory=dict)
    efas: int = 0
    spot: bool = False
    look: LaunchAttributes = field(default_factory=LaunchAttributes)
    devices: str = ""
    alias: str = ""
    overridden: bool = False
    vcpus: int | None = None

    @classmethod
    def from_template(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-launch-template-versions`."""
        data = raw.get("LaunchTemplateData") or {}
        interfaces = data.get("NetworkInterfaces") or ()
        market = data.get("InstanceMarketOptions") or {}
        return cls(
            template=raw.get("LaunchTemplateId") or "",
            version=int(raw.get("VersionNumber") or 0),
            default=bool(raw.get("DefaultVersion", False)),
            requirements=data.get("InstanceRequirements"),
            efas=sum(1 for one in interfaces if str(one.get("InterfaceType", "")).startswith("efa")),
            spot=market.get("MarketType") == "spot",
            vcpus=_vcpus(data.get("CpuOptions") or {}),
            **_both(data),
        )

    @classmethod
    def from_configuration(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-launch-configurations`."""
        return cls(spot=bool(raw.get("SpotPrice")), **_both(raw))


def chosen(versions: tuple[LaunchSettings, ...], version: str) -> LaunchSettings | None:
    """Return the version that `$Latest`, `$Default` (the first if none is marked) or a number means, None if it is not
    among them.
    """
    if version == "$Latest":
        return max(versions, key=lambda one: one.version, default=None)
    if version == "$Default":
        return next((one for one in versions if one.default), versions[0] if versions else None)
    return next((one for one in versions if str(one.version) == version), None)


def among_versions(wanted: LaunchTemplateRef, raw: Iterable[Mapping[str, Any]]) -> LaunchSettings | None:
    """Return the settings of the version, None if it is not among these elements of
    `describe-launch-template-versions`.
    """
    pairs = (("LaunchTemplateId", wanted.id), ("LaunchTemplateName", wanted.name))
    found = [one for one in raw if any(value and one.get(key) == value for key, value in pairs)]
    return chosen(tuple(LaunchSettings.from_template(one) for one in found), wanted.version)


def among_configurations(name: str, raw: Iterable[Mapping[str, Any]]) -> LaunchSettings | None:
    """Return the settings of the launch configuration, None if it is not among these elements."""
    found = (one for one in raw if one.get("LaunchConfigurationName") == name)
    return next((LaunchSettings.from_configuration(one) for one in found), None)


def _vcpus(options: Mapping[str, Any]) -> int | None:
    """Return the vCPUs that CpuOptions leave of a type's; None where they set none, as those of AMD SEV-SNP alone."""
    cores, threads = options.get("CoreCount"), options.get("ThreadsPerCore")
    return int(cores) * int(threads) if cores and threads else None


def _both(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that launch templates and launch configurations spell the same."""
    mappings = raw.get("BlockDeviceMappings") or ()
    sizes = {one.get("DeviceName", ""): (one.get("Ebs") or {}).get("VolumeSize") for one in mappings}
    return {
        "image": raw.get("ImageId") or "",
        "instance_type": raw.get("InstanceType") or "",
        "user_data": raw.get("UserData") or "",
        "volumes": {device: int(size) for device, size in sizes.items() if size},
        "look": LaunchAttributes.of_template(raw),
        "devices": json.dumps(list(mappings), sort_keys=True),
    }
