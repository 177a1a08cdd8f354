"""Resources that a node of a type has, and the part of them that pods can have.

Sources: Karpenter's instancetype/types.go (memory overhead, arm64's 64 MiB, names of the device plugins' resources);
for what is kept back, `leeward.node_template.kubelet`.

Number of pods that a node accepts: the kubelet's max pods, as EKS and its images set it.

Sources: awslabs/amazon-eks-ami,
templates/shared/runtime/eni-max-pods.txt and nodeadm's maxpods.go (the formula), and max-pods-calculator.sh (prefix
delegation, custom networking, 110 and 250); the EKS user guide, "Choose an optimal Amazon EC2 node instance type"
and "Assign more IP addresses to Amazon EKS nodes with prefixes" (managed node groups are capped with or without
prefixes, and the fewest pods of their types stand for all)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

from leeward.model.instance_type import Accelerator, InstanceType
from leeward.model.launch import LaunchSettings
from leeward.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from leeward.node_template.expression import evaluate
from leeward.node_template.kubelet import GIB, MIB, Family, KubeletSettings, withheld

HOST_NETWORK_PODS = 2  # aws-node and kube-proxy, which need no address of the interfaces
KUBELET_DEFAULT_MAX_PODS = 110
LARGE_TYPE_VCPUS = 30  # EKS recommends other caps from here on (max-pods-calculator.sh)
SMALL_TYPE_CAP, LARGE_TYPE_CAP = 110, 250  # pods
ADDRESSES_PER_PREFIX = 16  # of a /28
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}  # as Go's strconv.ParseBool, with which the VPC CNI reads them
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
class Networking:
    """Settings of the VPC CNI that EKS reads when it computes max pods for a managed node group.

    `prefixes`: prefix delegation is on. `custom`: custom networking is on.
    """

    prefixes: bool = False
    custom: bool = False

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Self:
        """Parse the environment of the aws-node DaemonSet's container, values by name."""
        return cls(
            prefixes=variables.get("ENABLE_PREFIX_DELEGATION", "") in _TRUE,
            custom=variables.get("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "") in _TRUE,
        )


NO_CNI_SETTINGS = Networking()


def interface_pods(kind: InstanceType, networking: Networking = NO_CNI_SETTINGS) -> int:
    """Return the number of pods that the type's interfaces can give an address: interfaces x (addresses - 1) + 2.

    Under custom networking the first interface serves no pods. With prefix delegation (Nitro only) each address stands
    for a prefix of 16. The result is 110 where the limits of the type are unknown.
    """
    enis = kind.max_enis - (1 if networking.custom else 0)
    if enis < 1 or kind.ips_per_eni < 1:
        return KUBELET_DEFAULT_MAX_PODS if not kind.max_enis else HOST_NETWORK_PODS
    each = (kind.ips_per_eni - 1) * (ADDRESSES_PER_PREFIX if networking.prefixes and kind.nitro else 1)
    return enis * each + HOST_NETWORK_PODS


def max_pods(
    kinds: Sequence[InstanceType], settings: KubeletSettings, networking: Networking, *, computed_by_eks: bool
) -> int:
    """Return the kubelet's max pods on a node of `kinds[0]`. `kinds`: all types that the group can launch.

    A value in the user data wins; otherwise the interfaces are counted, without a cap. `computed_by_eks`: EKS chooses
    the image and writes the user data. It caps the number at 110, or at 250 from 30 vCPUs on, and uses the smallest
    number of all types for each. A number that is unknown is at most the settings' `ceiling`. Kubelet takes the smaller
    of max pods and pods per core.
    """
    found = _max_pods(kinds, settings, networking, computed_by_eks=computed_by_eks)
    cores = (settings.pods_per_core or 0) * kinds[0].vcpus
    return min(most for most in (found, settings.ceiling, cores or None) if most is not None)


def _max_pods(
    kinds: Sequence[InstanceType], settings: KubeletSettings, networking: Networking, *, computed_by_eks: bool
) -> int:
    first = kinds[0]
    if settings.family is Family.WINDOWS or not settings.counts_interfaces:
        return settings.max_pods or KUBELET_DEFAULT_MAX_PODS
    own = expressed_pods(first, settings) if settings.max_pods is None else settings.max_pods
    if not computed_by_eks:
        return interface_pods(first) if own is None else own
    if settings.max_pods is not None:
        return min(settings.max_pods, _cap(first))
    # EKS may write maxPods beside an expression, and would win: the smaller number counts
    most = _cap(first) if own is None else min(own, _cap(first))
    return min(most, *(min(interface_pods(kind, networking), _cap(kind)) for kind in kinds))


def expressed_pods(kind: InstanceType, settings: KubeletSettings) -> int | None:
    """Return the value of the settings' maxPodsExpression on the type; None without one."""
    if not settings.expression:
        return None
    values = {
        "default_enis": kind.max_enis,
        "ips_per_eni": kind.ips_per_eni,
        "max_pods": interface_pods(kind),
    }
    return evaluate(settings.expression, values)


def _cap(kind: InstanceType) -> int:
    return LARGE_TYPE_CAP if kind.vcpus >= LARGE_TYPE_VCPUS else SMALL_TYPE_CAP


def reserved_pods(kind: InstanceType, settings: KubeletSettings, most: int) -> int:
    """Return the number of pods for which memory of the kubelet is reserved. `most`: max pods of the node.

    Amazon Linux counts the interfaces, or its expression, whatever max pods is; Bottlerocket uses max pods.
    """
    return most if settings.family is Family.BOTTLEROCKET else expressed_pods(kind, settings) or interface_pods(kind)


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
