"""Number of pods that a node takes: kubelet's max pods, as EKS sets it.

Sources: awslabs/amazon-eks-ami, templates/shared/runtime/eni-max-pods.txt and nodeadm's maxpods.go (the formula), and
max-pods-calculator.sh (prefix delegation, custom networking, 110 and 250); the EKS user guide, "Choose an optimal
Amazon EC2 node instance type" and "Assign more IP addresses to Amazon EKS nodes with prefixes" (managed node groups are
capped with or without prefixes, and the fewest pods of their types stand for all)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from leeward.model.instance_type import InstanceType
from leeward.node_template.kubelet import Family, KubeletSettings

HOST_PODS = 2  # aws-node and kube-proxy use the host's network
KUBELET_DEFAULT = 110
FEW, MANY, MANY_FROM = 110, 250, 30  # EKS' recommendation: 250 pods from 30 vCPUs on
PREFIX = 16  # addresses of a /28
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}  # Go's words


@dataclass(frozen=True, slots=True, kw_only=True)
class Networking:
    """Settings of the VPC CNI that EKS reads when it computes max pods for a managed node group."""

    prefixes: bool = False
    custom: bool = False

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Self:
        """Read the aws-node DaemonSet's environment."""
        return cls(
            prefixes=variables.get("ENABLE_PREFIX_DELEGATION", "") in _TRUE,
            custom=variables.get("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "") in _TRUE,
        )


PLAIN = Networking()


def interface_pods(kind: InstanceType, networking: Networking = PLAIN) -> int:
    """Return how many pods the type's interfaces can give an address: interfaces x (addresses - 1) + 2; 110 where EC2
    gives no limits. Under custom networking the first interface serves no pods; a prefix (Nitro only) is 16 addresses.
    """
    enis = kind.max_enis - (1 if networking.custom else 0)
    if enis < 1 or kind.ips_per_eni < 1:
        return KUBELET_DEFAULT if not kind.max_enis else HOST_PODS
    each = (kind.ips_per_eni - 1) * (PREFIX if networking.prefixes and kind.nitro else 1)
    return enis * each + HOST_PODS


def max_pods(
    kinds: Sequence[InstanceType], settings: KubeletSettings, networking: Networking, *, computed_by_eks: bool
) -> int:
    """Return kubelet's max pods on a node of the first of `kinds`, which are all that the group can launch.

    The user data's value wins, else the interfaces are counted, uncapped. Where EKS chooses the image and writes the
    user data (`computed_by_eks`), at most 110, from 30 vCPUs on 250, and the fewest of all types stand for each.
    """
    first = kinds[0]
    if settings.family is Family.WINDOWS or not settings.counts_interfaces:
        return settings.max_pods or KUBELET_DEFAULT
    if not computed_by_eks:
        return interface_pods(first) if settings.max_pods is None else settings.max_pods
    if settings.max_pods is not None:
        return min(settings.max_pods, _cap(first))
    return min(min(interface_pods(kind, networking), _cap(kind)) for kind in kinds)


def _cap(kind: InstanceType) -> int:
    return MANY if kind.vcpus >= MANY_FROM else FEW


def reserved_pods(kind: InstanceType, settings: KubeletSettings, most: int) -> int:
    """Return the number of pods for which kubelet's memory is reserved: Amazon Linux counts the interfaces whatever max
    pods is, Bottlerocket takes max pods.
    """
    return most if settings.family is Family.BOTTLEROCKET else interface_pods(kind)
