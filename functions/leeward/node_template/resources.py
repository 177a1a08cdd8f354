"""Resources that a node of a type has, and the part of them that pods can have.

Sources: Karpenter's instancetype/types.go (memory overhead, arm64's 64 MiB, names of the device plugins' resources);
for what is kept back, `leeward.node_template.kubelet`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from leeward.model.instance_type import Accelerator, InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from leeward.node_template.kubelet import GIB, MIB, Family, KubeletSettings, withheld
from leeward.node_template.pods import Networking, max_pods, reserved_pods

# EC2 advertises more memory than the kernel sees: Karpenter's default estimate (vmMemoryOverheadPercent) of the part
# that hypervisor and firmware take. An existing node reports the true value in its own capacity.
MEMORY_OVERHEAD = Fraction(75, 1000)
ARM_RESERVED_MIB = 64
DEFAULT_VOLUME_GIB, WINDOWS_VOLUME_GIB = 20, 50  # EKS' own default for diskSize
ROOT_DEVICES = ("/dev/xvda", "/dev/sda1")
BOTTLEROCKET_DATA = "/dev/xvdb"
EFA = "vpc.amazonaws.com/efa"
NEURON, NEURON_CORE = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"
GPUS = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Habana": "habana.ai/gaudi"}  # by EC2's maker


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Whole numbers by resource name, as `leeward.model.quantity` counts them."""

    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def resources_of(
    kinds: Sequence[InstanceType],
    kubelet: KubeletSettings,
    launch: LaunchSettings,
    *,
    networking: Networking,
    disk_gib: int | None = None,
    computed_by_eks: bool = False,
) -> Resources:
    """Return the resources of a node of the first of `kinds`, which are all that the group can launch. A value that a
    type does not give (memory 0) is left out: no pod that requests it then fits.
    """
    kind = kinds[0]
    vcpus = min(launch.vcpus or kind.vcpus, kind.vcpus)  # CpuOptions may leave fewer than the type has
    most = max_pods(kinds, kubelet, networking, computed_by_eks=computed_by_eks)
    most = min(most, kubelet.pods_per_core * vcpus) if kubelet.pods_per_core else most
    capacity = {
        CPU: vcpus * 1000,
        MEMORY: usable_memory(kind),
        EPHEMERAL_STORAGE: _storage(kind, kubelet, launch, disk_gib),
        PODS: most,
        **_devices(kind),
        EFA: min(launch.efas, kind.efas or launch.efas),
    }
    capacity = {name: value for name, value in capacity.items() if value > 0}
    unknown = () if kind.memory_mib or not kind.name else (f"memory of {kind.name} is not known and not shown",)
    kept, warnings = withheld(kubelet, capacity, vcpus=vcpus, pods=reserved_pods(kind, kubelet, most))
    allocatable = {name: max(0, value - kept.get(name, 0)) for name, value in capacity.items()}
    return Resources(capacity=capacity, allocatable=allocatable, warnings=(*unknown, *warnings))


def usable_memory(kind: InstanceType) -> int:
    """Return the bytes that the kernel will see: what EC2 advertises less an estimate, rounded down to MiB; 0 when not
    known. Requirements' minima, a type without a name, are shown as they are.
    """
    if not kind.name:
        return kind.memory_mib * MIB
    memory = kind.memory_mib - (ARM_RESERVED_MIB if "arm64" in kind.architectures else 0)
    return max(0, int(memory - -(-memory * MEMORY_OVERHEAD // 1))) * MIB


def _storage(kind: InstanceType, kubelet: KubeletSettings, launch: LaunchSettings, disk_gib: int | None) -> int:
    """Return the bytes of the volume that holds kubelet's files: local disks made into one (half of their size where
    each byte is kept twice), the volume of the launch template (Bottlerocket: its data volume), the node group's
    diskSize, EKS' default.
    """
    if kubelet.local_disks and kind.local_storage_gb:
        return kind.local_storage_gb * 10**9 // (2 if kubelet.mirrored else 1)
    devices = (BOTTLEROCKET_DATA,) if kubelet.family is Family.BOTTLEROCKET else ROOT_DEVICES
    root_gib = next((launch.volumes[device] for device in devices if device in launch.volumes), None)
    default = WINDOWS_VOLUME_GIB if kubelet.family is Family.WINDOWS else DEFAULT_VOLUME_GIB
    return (root_gib or disk_gib or default) * GIB


def _devices(kind: InstanceType) -> dict[str, int]:
    """Return what device plugins will offer. The chips of inference types are listed twice and counted once."""
    found = {
        name: sum(gpu.count for gpu in kind.gpus if gpu.maker.lower() == maker.lower()) for maker, name in GPUS.items()
    }
    chips: Sequence[Accelerator] = kind.neurons or tuple(chip for chip in kind.inference if chip.maker == "AWS")
    found[NEURON] = sum(chip.count for chip in chips)
    found[NEURON_CORE] = sum(chip.count * chip.cores for chip in chips)
    return found
