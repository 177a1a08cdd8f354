"""Instance types: the resources of a node of that type, as `describe-instance-types` reports them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}  # EC2's name -> Kubernetes' name; EKS has no others


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """GPUs or other chips of one maker. `maker` as EC2 writes it (NVIDIA, AMD, AWS, Habana); `memory_mib` and `cores`
    of each chip, 0 if EC2 does not report them.
    """

    maker: str
    name: str
    count: int
    memory_mib: int = 0
    cores: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """Instance type. `memory_mib` as EC2 advertises it; `max_enis` and `ips_per_eni` of the default network card,
    `all_enis` of all cards; `storage_kinds`: of local disks, ssd or hdd; `ebs_mbps`: sustained EBS bandwidth;
    `inference` and `neurons` name the same chips if both are reported.
    """

    name: str
    vcpus: int
    memory_mib: int
    max_enis: int = 0
    ips_per_eni: int = 0
    architectures: tuple[str, ...] = ("amd64",)
    nitro: bool = True
    bare_metal: bool = False
    gpus: tuple[Accelerator, ...] = ()
    inference: tuple[Accelerator, ...] = ()
    neurons: tuple[Accelerator, ...] = ()
    efas: int = 0
    local_storage_gb: int = 0
    max_volumes: int | None = None  # EBS attachments, if EC2 reports them
    fpgas: tuple[Accelerator, ...] = ()
    media: tuple[Accelerator, ...] = ()
    all_enis: int = 0
    storage_kinds: tuple[str, ...] = ()
    ebs_mbps: int = 0
    cpu_maker: str = ""  # EC2's name: Intel, AMD, AWS, Apple
    current_generation: bool = True
    burstable: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """Parse one element of `describe-instance-types`."""
        network = raw.get("NetworkInfo", {})
        cards = network.get("NetworkCards") or ()
        default = network.get("DefaultNetworkCardIndex", 0)
        disks = raw.get("InstanceStorageInfo", {}).get("Disks", ())
        enis = next((c["MaximumNetworkInterfaces"] for c in cards if c.get("NetworkCardIndex") == default), None)
        return cls(
            name=raw["InstanceType"],
            vcpus=int(raw.get("VCpuInfo", {}).get("DefaultVCpus", 0)),
            memory_mib=int(raw.get("MemoryInfo", {}).get("SizeInMiB", 0)),
            max_enis=int(enis if enis is not None else network.get("MaximumNetworkInterfaces", 0)),
            ips_per_eni=int(network.get("Ipv4AddressesPerInterface", 0)),
            architectures=tuple(
                ARCHITECTURES[name]
                for name in raw.get("ProcessorInfo", {}).get("SupportedArchitectures", ("x86_64",))
                if name in ARCHITECTURES
            ),
            nitro=raw.get("Hypervisor") == "nitro" or bool(raw.get("BareMetal")),
            bare_metal=bool(raw.get("BareMetal", False)),
            efas=int(network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)) if network.get("EfaSupported") else 0,
            local_storage_gb=int(raw.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0)),
            max_volumes=raw.get("EbsInfo", {}).get("MaximumEbsAttachments"),
            all_enis=int(network.get("MaximumNetworkInterfaces", 0)),
            storage_kinds=tuple(sorted({disk.get("Type", "") for disk in disks})),
            ebs_mbps=int(raw.get("EbsInfo", {}).get("EbsOptimizedInfo", {}).get("BaselineBandwidthInMbps", 0)),
            cpu_maker=raw.get("ProcessorInfo", {}).get("Manufacturer", ""),
            current_generation=bool(raw.get("CurrentGeneration", True)),
            burstable=bool(raw.get("BurstablePerformanceSupported", False)),
            **_chips(raw),
        )


def _chips(raw: Mapping[str, Any]) -> dict[str, tuple[Accelerator, ...]]:
    """Return the accelerators, by field."""
    return {
        "gpus": _accelerators(raw.get("GpuInfo", {}).get("Gpus")),
        "inference": _accelerators(raw.get("InferenceAcceleratorInfo", {}).get("Accelerators")),
        "neurons": _accelerators(raw.get("NeuronInfo", {}).get("NeuronDevices")),
        "fpgas": _accelerators(raw.get("FpgaInfo", {}).get("Fpgas")),
        "media": _accelerators(raw.get("MediaAcceleratorInfo", {}).get("Accelerators")),
    }


def _accelerators(raw: Any) -> tuple[Accelerator, ...]:
    return tuple(
        Accelerator(
            maker=one.get("Manufacturer", "AWS"),
            name=one.get("Name", ""),
            count=int(one.get("Count", 0)),
            memory_mib=int(one.get("MemoryInfo", {}).get("SizeInMiB", 0)),
            cores=int(one.get("CoreInfo", {}).get("Count", 0)),
        )
        for one in raw or ()
    )
