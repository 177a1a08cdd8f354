"""Instance types that meet InstanceRequirements (attribute-based selection).

Source: EC2's API reference, InstanceRequirements. Not checked, because DescribeInstanceTypes does not give enough data:
price protection, network bandwidth, hibernation, baseline performance. The list may therefore hold types that EC2 would
leave out; a check that pods fit on every type of it errs on the safe side.

Choices of a group's launches: instance types in the group's own order, zones, and the capacity type."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from leeward.model.group import Group
from leeward.model.image import Image
from leeward.model.instance import CapacityType
from leeward.model.instance_type import Accelerator, InstanceType
from leeward.model.launch import LaunchSettings, Override
from leeward.model.nodegroup import Nodegroup
from leeward.node_template.provenance import Provenance

_MAKERS = {"Intel": "intel", "AMD": "amd", "AWS": "amazon-web-services", "Apple": "apple"}
CHIP_MAKERS = {
    "NVIDIA": "nvidia",
    "AMD": "amd",
    "AWS": "amazon-web-services",
    "Xilinx": "xilinx",
    "Habana": "habana",
}
_ARM, _WINDOWS = "ARM", "WINDOWS"


def matching(
    requirements: Mapping[str, Any], types: Iterable[InstanceType], architecture: str | None = None
) -> tuple[InstanceType, ...]:
    """Return the types that meet them, the smallest first (vCPUs, memory, name). `architecture`: of the image, in
    Kubernetes' word, any when None.
    """
    found = [
        kind
        for kind in types
        if (architecture is None or architecture in kind.architectures)
        and all(meets(kind, requirements) for meets in _CHECKS)
    ]
    return tuple(sorted(found, key=lambda kind: (kind.vcpus, kind.memory_mib, kind.name)))


def accelerators(kind: InstanceType) -> Mapping[str, Sequence[Accelerator]]:
    """Return the accelerators by EC2's word for their type; chips of inference types are listed twice, counted once."""
    inference = kind.inference or kind.neurons
    found = {"gpu": kind.gpus, "inference": inference, "fpga": kind.fpgas, "media": kind.media}
    return {name: chips for name, chips in found.items() if chips}


def _within(limits: Any, value: float) -> bool:
    """Return whether the value is within {"Min", "Max"}; an absent bound is no limit."""
    bounds = limits or {}
    low, high = bounds.get("Min"), bounds.get("Max")
    return (low is None or value >= low) and (high is None or value <= high)


def _sizes(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    per_core = kind.memory_mib / 1024 / kind.vcpus if kind.vcpus else 0.0
    return (
        _within(wanted.get("VCpuCount"), kind.vcpus)
        and _within(wanted.get("MemoryMiB"), kind.memory_mib)
        and _within(wanted.get("MemoryGiBPerVCpu"), per_core)
        and _within(wanted.get("NetworkInterfaceCount"), kind.all_enis or kind.max_enis)
        and _within(wanted.get("BaselineEbsBandwidthMbps"), kind.ebs_mbps)
    )


def _names(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    """Match the name. Allowed and excluded types may be patterns: `m5.8xlarge`, `c5*.*`, `r*`."""
    allowed, excluded = wanted.get("AllowedInstanceTypes"), wanted.get("ExcludedInstanceTypes") or ()
    if allowed and not any(fnmatchcase(kind.name, pattern) for pattern in allowed):
        return False
    return not any(fnmatchcase(kind.name, pattern) for pattern in excluded)


def _generation(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    generations = wanted.get("InstanceGenerations")
    return not generations or ("current" if kind.current_generation else "previous") in generations


def _cpu(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    makers = wanted.get("CpuManufacturers")
    return not makers or _MAKERS.get(kind.cpu_maker, kind.cpu_maker.lower()) in makers


def _kinds(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    """Match bare metal and burstable types only on request; local disks make no difference unless requested."""
    return (
        _switch(wanted.get("BareMetal", "excluded"), kind.bare_metal)
        and _switch(wanted.get("BurstablePerformance", "excluded"), kind.burstable)
        and _switch(wanted.get("LocalStorage", "included"), kind.local_storage_gb > 0)
    )


def _switch(word: str, has: bool) -> bool:
    return {"required": has, "excluded": not has}.get(word, True)


def _storage(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    disks = wanted.get("LocalStorageTypes")
    if disks and kind.local_storage_gb and not set(disks) & set(kind.storage_kinds):
        return False
    return _within(wanted.get("TotalLocalStorageGB"), kind.local_storage_gb)


def _chips(kind: InstanceType, wanted: Mapping[str, Any]) -> bool:
    by_type = accelerators(kind)
    chips = [chip for several in by_type.values() for chip in several]
    if not _within(wanted.get("AcceleratorCount"), sum(chip.count for chip in chips)):
        return False
    if not _within(wanted.get("AcceleratorTotalMemoryMiB"), sum(chip.memory_mib * chip.count for chip in chips)):
        return False
    names = {chip.name.lower().replace(" ", "-") for chip in chips}
    makers = {CHIP_MAKERS.get(chip.maker, chip.maker.lower()) for chip in chips}
    asked = (("AcceleratorTypes", set(by_type)), ("AcceleratorManufacturers", makers), ("AcceleratorNames", names))
    return all(not wanted.get(key) or has & set(wanted[key]) for key, has in asked)


_CHECKS: tuple[Callable[[InstanceType, Mapping[str, Any]], bool], ...] = (
    _sizes,
    _names,
    _generation,
    _cpu,
    _kinds,
    _storage,
    _chips,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Choices of a group. `types` by name, the first stands for all where one has to; `zones` in the group's order;
    `capacity` None where the group mixes on-demand and spot. `warnings`: why a list may not be complete. `minima`: a
    type without a name that has the least that requirements ask for, where no known type meets them. `architecture`:
    how far that of the types can be relied on. `own`: by type, the override that brings it, where that has a launch
    template or an image of its own.
    """

    types: tuple[str, ...]
    zones: tuple[str, ...]
    capacity: CapacityType | None
    warnings: tuple[str, ...] = ()
    minima: InstanceType | None = None
    architecture: Provenance = Provenance.DECLARED
    own: Mapping[str, Override] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Named:
    """Types by name, in the group's order, and of some the override with a launch of its own. `unsure`: those that
    requirements name while the architecture of their image is not known.
    """

    types: dict[str, Override | None] = field(default_factory=dict)
    unsure: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchImages:
    """Images of a group's launches, as far as they were read."""

    own: Image | None = None  # of the launch template or configuration
    built: Mapping[int, str] = field(default_factory=dict)
    """Architecture of the image of each override that has one of its own, by its place; empty where it is not known."""


NO_IMAGES = LaunchImages()


def choices(
    group: Group,
    settings: LaunchSettings | None,
    nodegroup: Nodegroup | None = None,
    *,
    known: Mapping[str, InstanceType],
    running: Iterable[str] = (),
    images: LaunchImages = NO_IMAGES,
) -> Choices:
    """Return the choices. Types: of the overrides, else of the launch template or configuration, else of
    DescribeNodegroup, else those that the group runs. Requirements stand for all types in `known` that meet them and
    that run the image: EC2 launches no others. Where the image is not known, its architecture is that of the running
    types.
    """
    running = tuple(running)
    told = architecture_of(nodegroup) or (images.own.architecture if images.own else "")
    guessed = "" if told else _shared(known[name] for name in running if name in known)
    named = _named(group, settings, (told, guessed), known, images.built)
    types, warnings = tuple(named.types), named.warnings
    origin = Provenance.DECLARED
    if named.unsure:
        origin = _origin([known[name] for name in named.unsure if name in known], guessed)
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
        own={name: override for name, override in named.types.items() if override is not None},
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


def _named(
    group: Group,
    settings: LaunchSettings | None,
    architecture: tuple[str, str],
    known: Mapping[str, InstanceType],
    built: Mapping[int, str],
) -> _Named:
    """Return the types of the overrides, else of the launch template: a type that several bring is the first one's.
    `architecture`: of the group's own image, declared and estimated.
    """
    named = _Named()
    wanted = group.launch.overrides
    if settings is not None and not any(one.instance_type or one.requirements for one in wanted):
        wanted = (Override(instance_type=settings.instance_type, requirements=settings.requirements),)
    for place, override in enumerate(wanted):
        types = [override.instance_type] if override.instance_type else []
        if not types and override.requirements is not None:
            told, guessed = (built[place], "") if place in built else architecture
            types = [kind.name for kind in matching(override.requirements, known.values(), told or guessed or None)]
            named.unsure += [] if told else types
            if not types:
                named.warnings.append(
                    f"no known instance type meets the requirements of {group.name}: their minima are shown"
                )
        for name in types:
            named.types.setdefault(name, override if override.template or override.image else None)
    return named


def narrowed(found: Choices, *, zone: str | None = None, instance_type: str | None = None) -> Choices:
    """Put the requested zone and type in front of the others: the first one stands for all."""
    zones = (zone, *(name for name in found.zones if name != zone)) if zone else found.zones
    first = (instance_type,) if instance_type else ()
    return replace(found, zones=zones, types=(*first, *(name for name in found.types if name not in first)))


def as_launched(group: Group, override: Override | None) -> Group:
    """Return the group with the launch template from which it launches the types of the override: it may bring one."""
    if override is None or override.template is None:
        return group
    return replace(group, launch=replace(group.launch, template=override.template))


def with_image(settings: LaunchSettings | None, override: Override | None) -> LaunchSettings | None:
    """Return the settings with the override's image, which wins over that of the launch template."""
    if settings is None or override is None or not override.image:
        return settings
    return replace(settings, image=override.image, alias="", overridden=True)


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
