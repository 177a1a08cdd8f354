"""Instance types that meet InstanceRequirements (attribute-based selection).

Source: EC2's API reference, InstanceRequirements. Not checked, because DescribeInstanceTypes does not give enough data:
price protection, network bandwidth, hibernation, baseline performance. The list may therefore hold types that EC2 would
leave out; a check that pods fit on every type of it errs on the safe side."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from leeward.model.instance_type import Accelerator, InstanceType

_MAKERS = {"Intel": "intel", "AMD": "amd", "AWS": "amazon-web-services", "Apple": "apple"}
CHIP_MAKERS = {
    "NVIDIA": "nvidia",
    "AMD": "amd",
    "AWS": "amazon-web-services",
    "Xilinx": "xilinx",
    "Habana": "habana",
}


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
