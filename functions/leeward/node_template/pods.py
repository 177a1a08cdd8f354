"""Number of pods that a node accepts: the kubelet's max pods, as EKS and its images set it.

Decides the number only; `node_template.resources` reserves memory for it. Sources: awslabs/amazon-eks-ami,
templates/shared/runtime/eni-max-pods.txt and nodeadm's maxpods.go (the formula), and max-pods-calculator.sh (prefix
delegation, custom networking, 110 and 250); the EKS user guide, "Choose an optimal Amazon EC2 node instance type"
and "Assign more IP addresses to Amazon EKS nodes with prefixes" (managed node groups are capped with or without
prefixes, and the fewest pods of their types stand for all)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from leeward.model.instance_type import InstanceType
from leeward.node_template.expression import evaluate
from leeward.node_template.kubelet import Family, KubeletSettings

HOST_NETWORK_PODS = 2  # aws-node and kube-proxy, which need no address of the interfaces
KUBELET_DEFAULT_MAX_PODS = 110
LARGE_TYPE_VCPUS = 30  # EKS recommends other caps from here on (max-pods-calculator.sh)
SMALL_TYPE_CAP, LARGE_TYPE_CAP = 110, 250  # pods
ADDRESSES_PER_PREFIX = 16  # of a /28
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}  # as Go's strconv.ParseBool, with which the VPC CNI reads them


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
