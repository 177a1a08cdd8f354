"""Choices of a group's launches: instance types in the group's own order, zones, and the capacity type."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance import CapacityType
from leeward.model.instance_type import Accelerator, InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.provenance import Provenance
from leeward.node_template.requirements import CHIP_MAKERS, matching

_ARM, _WINDOWS = "ARM", "WINDOWS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Choices of a group. `types` by name, the first stands for all where one has to; `zones` in the group's order;
    `capacity` None where the group mixes on-demand and spot. `warnings`: why a list may not be complete. `minima`: a
    type without a name that has the least that requirements ask for, where no known type meets them. `architecture`:
    how far that of the types can be relied on.
    """

    types: tuple[str, ...]
    zones: tuple[str, ...]
    capacity: CapacityType | None
    warnings: tuple[str, ...] = ()
    minima: InstanceType | None = None
    architecture: Provenance = Provenance.DECLARED


def choices(
    group: Group,
    settings: LaunchSettings | None,
    nodegroup: Nodegroup | None = None,
    *,
    known: Mapping[str, InstanceType],
    running: Iterable[str] = (),
    image: Image | None = None,
) -> Choices:
    """Return the choices. Types: of the overrides, else of the launch template or configuration, else of
    DescribeNodegroup, else those that the group runs. Requirements stand for all types in `known` that meet them and
    that run the image: EC2 launches no others. Where the image is not known, its architecture is that of the running
    types.
    """
    running = tuple(running)
    told = architecture_of(nodegroup) or (image.architecture if image else "")
    guessed = "" if told else _shared(known[name] for name in running if name in known)
    types, warnings = _types(group, settings, told or guessed or None, known)
    origin = Provenance.DECLARED
    if by_requirements(group, settings) and not told and types:
        origin = _origin([known[name] for name in types if name in known], guessed)
    if origin is Provenance.UNKNOWN:
        warnings.append(f"the architecture of the image of {group.name} is not known: types of several are shown")
    minima = None if types else _minima(group, settings)
    types = types or (nodegroup.instance_types if nodegroup else ()) or tuple(sorted(running))
    if not types:
        warnings.append(f"it is unknown which instance type {group.name} launches")
    return Choices(
        types=types,
        zones=group.zones,
        capacity=_capacity(group, settings, nodegroup),
        warnings=tuple(warnings),
        minima=minima,
        architecture=origin,
    )


def by_requirements(group: Group, settings: LaunchSettings | None) -> bool:
    """Return whether requirements choose the types."""
    return any(one.requirements for one in group.launch.overrides) or bool(settings and settings.requirements)


def _shared(kinds: Iterable[InstanceType]) -> str:
    """Return the architecture that all types have; empty where they differ."""
    found = {kind.architectures for kind in kinds}
    return next(iter(found))[0] if len(found) == 1 and any(found) else ""


def _origin(kinds: Iterable[InstanceType], guessed: str) -> Provenance:
    """Return the origin of an architecture that no image tells: types of one architecture leave no doubt."""
    if guessed:
        return Provenance.ESTIMATED
    return Provenance.DECLARED if _shared(kinds) else Provenance.UNKNOWN


def _minima(group: Group, settings: LaunchSettings | None) -> InstanceType | None:
    """Return the least vCPUs, memory and accelerators of the first requirements, or None without any."""
    requirements = [one.requirements for one in group.launch.overrides] + ([settings.requirements] if settings else [])
    needs = next((one for one in requirements if one), None)
    if needs is None:
        return None
    vcpus, memory = ((needs.get(key) or {}).get("Min") or 0 for key in ("VCpuCount", "MemoryMiB"))
    chips = _least_chips(needs)
    return InstanceType(
        name="",
        vcpus=vcpus,
        memory_mib=memory,
        architectures=(),
        gpus=tuple(chip for chip in chips if chip.maker != "AWS"),
        neurons=tuple(chip for chip in chips if chip.maker == "AWS"),
    )


def _least_chips(needs: Mapping[str, Any]) -> tuple[Accelerator, ...]:
    """Return the fewest accelerators that the requirements allow; none where they leave the maker open, which names the
    resource.
    """
    count = (needs.get("AcceleratorCount") or {}).get("Min") or 0
    asked = set(needs.get("AcceleratorManufacturers") or ())
    makers = [maker for maker, word in CHIP_MAKERS.items() if asked == {word}]
    return tuple(Accelerator(maker=maker, name="", count=count) for maker in makers if count)


def _types(
    group: Group, settings: LaunchSettings | None, architecture: str | None, known: Mapping[str, InstanceType]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the types of the overrides, else of the launch template, with warnings."""
    types: list[str] = []
    warnings: list[str] = []
    wanted = [(one.instance_type, one.requirements) for one in group.launch.overrides]
    if settings is not None and not any(name or needs for name, needs in wanted):
        wanted = [(settings.instance_type, settings.requirements)]
    for name, needs in wanted:
        if name:
            types.append(name)
        elif needs is not None:
            found = matching(needs, known.values(), architecture)
            types += [kind.name for kind in found]
            if not found:
                warnings.append(
                    f"no known instance type meets the requirements of {group.name}: their minima are shown"
                )
    return tuple(dict.fromkeys(types)), warnings


def narrowed(found: Choices, *, zone: str | None = None, instance_type: str | None = None) -> Choices:
    """Put the requested zone and type in front of the others: the first one stands for all."""
    zones = (zone, *(name for name in found.zones if name != zone)) if zone else found.zones
    first = (instance_type,) if instance_type else ()
    return replace(found, zones=zones, types=(*first, *(name for name in found.types if name not in first)))


def as_launched(group: Group, instance_type: str) -> Group:
    """Return the group with the launch template from which it would launch the type: an override may bring its own."""
    for override in group.launch.overrides:
        if override.instance_type == instance_type and override.template is not None:
            return replace(group, launch=replace(group.launch, template=override.template))
    return group


def architecture_of(nodegroup: Nodegroup | None) -> str | None:
    """Return the image's architecture, in Kubernetes' word, from EKS' amiType; None if absent or CUSTOM."""
    if nodegroup is None or not nodegroup.ami_type or nodegroup.ami_type == "CUSTOM":
        return None
    return "arm64" if _ARM in nodegroup.ami_type else "amd64"


def is_windows(nodegroup: Nodegroup | None) -> bool:
    """Return whether EKS' amiType is one of Windows."""
    return nodegroup is not None and nodegroup.ami_type.startswith(_WINDOWS)


def _capacity(group: Group, settings: LaunchSettings | None, nodegroup: Nodegroup | None) -> CapacityType | None:
    if nodegroup is not None and nodegroup.capacity_type:
        return CapacityType.SPOT if nodegroup.capacity_type == "SPOT" else CapacityType.ON_DEMAND
    if group.on_demand_percentage is None:
        return CapacityType.SPOT if settings is not None and settings.spot else CapacityType.ON_DEMAND
    if group.on_demand_percentage == 100:
        return CapacityType.ON_DEMAND
    filled = len(group.instances) >= group.on_demand_base
    return CapacityType.SPOT if group.on_demand_percentage == 0 and filled else None
